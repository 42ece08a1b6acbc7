/** Addresses without a project, as in links that were made before projects had pages of their own. */
import { createRoute, redirect } from "@tanstack/react-router";
import { findExperiment, runQuery } from "@/api/queries";
import { readBenchmarksSearch } from "@/features/benchmarks/search";
import { readCompareSearch } from "@/features/compare/search";
import { readExperimentSearch } from "@/features/experiment/search";
import { readExperimentsSearch } from "@/features/experiments/search";
import { readRunSearch } from "@/features/run/search";
import { readRunsSearch } from "@/features/runs/search";
import { inside } from "./frames";
import { chooseFirstSlug, chooseSlugOfView, onlySlug } from "./guards";

const oldExperiments = createRoute({
  getParentRoute: () => inside,
  path: "/experiments",
  validateSearch: readExperimentsSearch,
  beforeLoad: async ({ context, search }) => {
    const params = { project: await chooseFirstSlug(context.client) };
    throw redirect({ to: "/p/$project/experiments", params, search });
  },
});

const oldExperiment = createRoute({
  getParentRoute: () => inside,
  path: "/experiments/$experimentId",
  validateSearch: readExperimentSearch,
  beforeLoad: async ({ context, params: { experimentId }, search }) => {
    const slug = (await onlySlug(context.client)) ?? (await findExperiment(experimentId)).project;
    const params = { project: slug, experimentId };
    throw redirect({ to: "/p/$project/experiments/$experimentId", params, search });
  },
});

const oldRuns = createRoute({
  getParentRoute: () => inside,
  path: "/runs",
  validateSearch: readRunsSearch,
  beforeLoad: async ({ context, search }) => {
    const params = { project: await chooseSlugOfView(context.client, search.view) };
    throw redirect({ to: "/p/$project/runs", params, search });
  },
});

const oldRun = createRoute({
  getParentRoute: () => inside,
  path: "/runs/$runId",
  validateSearch: readRunSearch,
  beforeLoad: async ({ context, params: { runId }, search }) => {
    const slug =
      (await onlySlug(context.client)) ??
      (await context.client.fetchQuery(runQuery(runId))).project;
    throw redirect({ to: "/p/$project/runs/$runId", params: { project: slug, runId }, search });
  },
});

const oldQueue = createRoute({
  getParentRoute: () => inside,
  path: "/queue",
  beforeLoad: async ({ context }) => {
    throw redirect({
      to: "/p/$project/queue",
      params: { project: await chooseFirstSlug(context.client) },
    });
  },
});

const oldBenchmarks = createRoute({
  getParentRoute: () => inside,
  path: "/benchmarks",
  validateSearch: readBenchmarksSearch,
  beforeLoad: async ({ context, search }) => {
    const params = { project: await chooseFirstSlug(context.client) };
    throw redirect({ to: "/p/$project/benchmarks", params, search });
  },
});

const oldCompare = createRoute({
  getParentRoute: () => inside,
  path: "/compare",
  validateSearch: readCompareSearch,
  beforeLoad: async ({ context, search }) => {
    const params = { project: await chooseFirstSlug(context.client) };
    throw redirect({ to: "/p/$project/compare", params, search });
  },
});

export const oldAddresses = [
  oldExperiments,
  oldExperiment,
  oldRuns,
  oldRun,
  oldQueue,
  oldBenchmarks,
  oldCompare,
] as const;
