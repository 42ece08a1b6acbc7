import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { experimentQuery, experimentRunsQuery } from "@/api/queries";
import { jobQuery } from "@/api/queueQueries";
import { presetsQuery, readOptions } from "@/api/submissions";
import type { ExperimentDetail, Job, Preset, Run } from "@/api/types";
import { findQueryError } from "@/lib/outage";
import { replaceEnvironment } from "./environment";
import { schemaQuery } from "./queries";
import { findUnion, pruneDefaults, type Schema } from "./schema";
import { type NewExperimentSearch, readSeeds } from "./search";
import { writeText } from "./text";

/** With what the form begins. */
export interface Origin {
  /** Names the draft. */
  source: string;
  text: string;
  schema: Schema;
  presets: readonly Preset[];
  preset: string | null;
  /** The experiment that is cloned. */
  original: ExperimentDetail | null;
}

interface Loading {
  origin: Origin | null;
  problem: Error | null;
  retry(): void;
}

const EMPTY = "definition:\n  kind: rl\n  name: New experiment\noptions: {}\n";

/** Reads what the form needs: the schema, the presets, and the experiment to clone. */
export function useOrigin(project: string, search: NewExperimentSearch): Loading {
  const schema = useQuery(schemaQuery);
  const presets = useQuery(presetsQuery);
  const { from, env, seeds } = search;
  const original = useQuery({
    ...experimentQuery(project, from ?? ""),
    enabled: from !== undefined,
  });
  const runs = useQuery({
    ...experimentRunsQuery(project, from ?? ""),
    enabled: from !== undefined,
  });
  const other = useQuery({
    ...experimentQuery(project, env ?? ""),
    enabled: from !== undefined && env !== undefined,
  });
  const jobId = runs.data?.find((run) => run.job_id !== null)?.job_id ?? null;
  const job = useQuery({ ...jobQuery(jobId ?? ""), enabled: jobId !== null });
  const isWhole =
    from === undefined ||
    (original.data &&
      runs.data &&
      (jobId === null || job.data) &&
      (env === undefined || other.data));
  const origin = useMemo((): Origin | null => {
    if (!schema.data || !presets.data || !isWhole) return null;
    const common = { schema: schema.data, presets: presets.data };
    if (from !== undefined && original.data) {
      const experiment = other.data ? takeEnvironment(original.data, other.data) : original.data;
      const wanted = readSeeds(seeds)?.map((seed) => ({ seed })) ?? runs.data ?? [];
      const text = writeClone(schema.data, experiment, wanted, job.data ?? null);
      const source = [from, env, seeds].filter((one) => one !== undefined).join(" ");
      return { ...common, source, text, preset: null, original: original.data };
    }
    const named = presets.data.find((one) => one.name === search.preset) ?? presets.data[0];
    return {
      ...common,
      source: "new",
      text: named?.document ?? EMPTY,
      preset: named?.name ?? null,
      original: null,
    };
  }, [
    schema.data,
    presets.data,
    isWhole,
    from,
    env,
    seeds,
    original.data,
    other.data,
    runs.data,
    job.data,
    search.preset,
  ]);
  const queries = [schema, presets, original, other, runs, job];
  const problem = queries.map((one) => findQueryError(one)).find((one) => one !== null) ?? null;
  return {
    origin,
    problem,
    retry: () => {
      for (const query of queries) if (query.isError) void query.refetch();
    },
  };
}

type Defined = Pick<ExperimentDetail, "definition">;

/** Returns an experiment with the environment of another one, and what that says about it. */
export function takeEnvironment(experiment: Defined, other: Defined): Defined {
  const definition = replaceEnvironment(experiment.definition, other.definition);
  return { definition: definition as ExperimentDetail["definition"] };
}

/** Writes the submission of an experiment: its definition without defaults, and its options. */
export function writeClone(
  root: Schema,
  experiment: Defined,
  runs: readonly Pick<Run, "seed">[],
  job: Job | null,
): string {
  const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
  const options = {
    ...(seeds.length > 0 && { seeds }),
    ...readOptions(job),
  };
  const union = root.properties?.definition ?? {};
  return writeText({
    definition: pruneDefaults(root, findUnion(root, union, experiment.definition), {
      ...experiment.definition,
    }),
    options: pruneDefaults(root, root.properties?.options ?? {}, options),
  });
}
