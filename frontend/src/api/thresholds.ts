import { queryOptions } from "@tanstack/react-query";
import { get, put, remove } from "./client";
import { pathIn } from "./queries";
import type { Page, Threshold, ThresholdRequest } from "./types";

export const thresholdKeys = {
  all: ["thresholds"] as const,
  of: (slug: string) => ["thresholds", slug] as const,
};

/** Thresholds of a project by name. */
export function thresholdsQuery(slug: string) {
  return queryOptions({
    queryKey: thresholdKeys.of(slug),
    queryFn: async ({ signal }) =>
      (await get<Page<Threshold>>(pathIn(slug, "/thresholds"), {}, signal)).items,
  });
}

export function setThreshold(
  slug: string,
  name: string,
  request: ThresholdRequest,
): Promise<Threshold> {
  return put<Threshold>(pathOf(slug, name), request);
}

export function removeThreshold(slug: string, name: string): Promise<void> {
  return remove(pathOf(slug, name));
}

function pathOf(slug: string, name: string): string {
  return pathIn(slug, `/thresholds/${encodeURIComponent(name)}`);
}
