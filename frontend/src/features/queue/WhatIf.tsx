import type { Job, JobChange } from "@/api/types";

/** What the place of a job would be after a change. */
export function WhatIf(_props: { job: Job; change: JobChange }) {
  return null;
}
