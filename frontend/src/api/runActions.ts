/** Actions on many runs. */
import { post } from "./client";
import type { RunSelection, RunsActed, RunVerb } from "./types";

/**
 * Acts on many runs, by as many requests as needed; counts them alone with `dryRun`. `matched` is
 * the number of all runs that were selected.
 */
export async function actOnRuns(
  project: string | null,
  action: RunVerb,
  selection: RunSelection,
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<RunsActed> {
  const body = { action, selection, dry_run: dryRun };
  const first = await post<RunsActed>("/runs:act", body, { project });
  const done = [...first.done];
  const refused = [...first.refused];
  for (let after = first.next_after; after !== null; ) {
    const part = await post<RunsActed>("/runs:act", { ...body, after }, { project });
    done.push(...part.done);
    refused.push(...part.refused);
    after = part.next_after;
  }
  return { ...first, done, refused, next_after: null };
}
