/** The requests that submit, and those that say what a submission or a job can be. */
import { queryOptions } from "@tanstack/react-query";
import { get, post, postQuery } from "./client";
import { everyPage } from "./queries";
import type {
  Catalogue,
  ExperimentDetail,
  Job,
  JobOptions,
  Preset,
  SubmissionPreview,
  SubmittedExperiment,
} from "./types";

export const presetsQuery = queryOptions({
  queryKey: ["presets"],
  queryFn: ({ signal }) => everyPage<Preset>("/definitions/presets", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

/** What the workers of a pool offer; `null` where none has registered, or the pool is unknown. */
export function catalogueQuery(pool: string) {
  return queryOptions({
    queryKey: ["catalogue", pool],
    queryFn: async ({ signal }) => {
      const found = await get<Catalogue>("/catalogue", { pool }, signal);
      return found.known ? found.catalogue : null;
    },
    staleTime: 60_000,
    retry: false,
  });
}

/** What a submission would do. */
export function previewQuery(project: string, document: unknown) {
  return queryOptions({
    queryKey: ["submission preview", project, document],
    queryFn: ({ signal }) =>
      postQuery<SubmissionPreview>("/experiments:preview", document, signal, { project }),
    retry: false,
    staleTime: 10_000,
    refetchInterval: 15_000,
  });
}

/** Seeds that the server takes in one submission. */
const MAX_SEEDS = 1_000;

/**
 * Submits a document. More seeds than the server takes at once are sent as several submissions, of
 * which the same document adds the missing ones after a break.
 */
export async function submitDocument(
  project: string,
  document: unknown,
): Promise<SubmittedExperiment> {
  const { options } = document as { options?: { seeds?: unknown } };
  const seeds = Array.isArray(options?.seeds) ? options.seeds : [];
  let first = 0;
  for (; first + MAX_SEEDS < seeds.length; first += MAX_SEEDS) {
    const part = seeds.slice(first, first + MAX_SEEDS);
    const body = { ...(document as object), options: { ...options, seeds: part } };
    await post("/experiments", body, { project });
  }
  const last = first === 0 ? options : { ...options, seeds: seeds.slice(first) };
  const body = first === 0 ? document : { ...(document as object), options: last };
  return post("/experiments", body, { project });
}

type Options = Pick<
  JobOptions,
  "schedule" | "pool" | "priority_class" | "priority" | "resources" | "limits"
>;

/** The options of a job, as those of a submission. */
export function readOptions(job: Job | null): Partial<Options> {
  if (job === null) return {};
  const { schedule, pool, priority_class, priority, resources, limits } = job;
  return { schedule, pool, priority_class, priority, resources, limits };
}

/** The submission that adds seeds to an experiment, with the options of one of its jobs. */
export function buildSeedSubmission(
  experiment: Pick<ExperimentDetail, "definition">,
  job: Job | null,
  seeds: readonly number[],
) {
  return { definition: experiment.definition, options: { ...readOptions(job), seeds } };
}
