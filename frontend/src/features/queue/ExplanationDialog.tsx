import { Modal, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { ApiError } from "@/api/client";
import { explanationQuery } from "@/api/queueQueries";
import type { JobExplanation } from "@/api/types";
import {
  formatCount,
  formatDuration,
  formatMoment,
  formatPercent,
  formatPlural,
} from "@/lib/format";
import { HEARTBEAT_MS } from "@/live/useLiveQueue";
import { Facts } from "@/ui/Facts";
import { Failure } from "@/ui/Failure";
import classes from "./Queue.module.css";

/** The reason why a job waits, and the terms of its place in the order of their comparison. */
export function ExplanationDialog({ jobId, onClose }: { jobId: string | null; onClose(): void }) {
  return (
    <Modal opened={jobId !== null} onClose={onClose} title="Why this job waits" size="lg">
      {jobId !== null && <Content jobId={jobId} />}
    </Modal>
  );
}

function Content({ jobId }: { jobId: string }) {
  const query = useQuery({ ...explanationQuery(jobId), refetchInterval: HEARTBEAT_MS });
  if (query.data === undefined)
    return query.isError ? (
      <Failure error={query.error as ApiError} retry={() => void query.refetch()} />
    ) : (
      <Skeleton height={180} radius={10} />
    );
  return (
    <>
      <p className={classes.sentence}>{query.data.sentence}</p>
      <Facts items={factsOf(query.data)} />
    </>
  );
}

function factsOf(found: JobExplanation): (readonly [string, ReactNode])[] {
  const { terms } = found;
  if (terms === null) return [];
  const more = found.ahead_is_cut ? " or more" : "";
  return [
    ["Class", terms.priority_class],
    [
      "Project",
      `${formatDuration(terms.project_usage)} of device time; its share of the pool is ${formatPercent(terms.project_share)}`,
    ],
    ["Person", `${formatDuration(terms.user_usage)} of device time in the project`],
    ["Own priority", formatCount(terms.priority)],
    ["Seed", `number ${formatCount(terms.seed_index + 1)} of its experiment`],
    ["Queued", formatMoment(terms.queued_at)],
    ["Before it", `${formatPlural(found.ahead, "job")}${more}`],
    ...(found.own_ahead.length === 0
      ? []
      : ([["You may read", <JobIds key="ids" ids={found.own_ahead} />]] as const)),
  ];
}

function JobIds({ ids }: { ids: readonly string[] }) {
  const shown = ids.slice(0, 5);
  return (
    <span className="mono">
      {shown.join(", ")}
      {ids.length > shown.length && ` and ${formatCount(ids.length - shown.length)} more`}
    </span>
  );
}
