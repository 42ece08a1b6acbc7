/** The requests that read, one query per resource. The live stream updates the same cache. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { buildAddress, get, postQuery, setCsrfToken } from "./client";
import type * as t from "./types";

export interface ExperimentFilter {
  text?: string | undefined;
  state?: string | undefined;
  agent?: string | undefined;
  env?: string | undefined;
  /** Login name of who submitted; `me` is the caller. */
  user?: string | undefined;
  sort?: string | undefined;
  archived?: boolean | undefined;
  /** Keys whose values are read with each experiment. */
  columns?: readonly string[] | undefined;
}

export const PAGE_SIZE = 100;

export const keys = {
  session: ["session"] as const,
  loginOptions: ["login options"] as const,
  experiments: ["experiments"] as const,
  experiment: (project: string, id: string) => ["experiment", project, id] as const,
  experimentRuns: (project: string, id: string) => ["experiment", project, id, "runs"] as const,
  curves: ["series"] as const,
  statistics: ["statistics"] as const,
  comparisons: ["comparisons"] as const,
  experimentById: (id: string) => ["experiment by id", id] as const,
  allRuns: ["run"] as const,
  run: (id: string) => ["run", id] as const,
  evaluations: (id: string) => ["run", id, "evaluations"] as const,
  snapshots: (id: string) => ["run", id, "snapshots"] as const,
  files: (id: string) => ["run", id, "files"] as const,
  videos: (id: string) => ["run", id, "videos"] as const,
  seriesNames: (id: string) => ["run", id, "series"] as const,
  provenance: (id: string) => ["run", id, "provenance"] as const,
  runLists: ["runs", "list"] as const,
  runGroups: ["runs", "groups"] as const,
  runKeys: ["runs", "keys"] as const,
  savedViews: ["saved views"] as const,
  jobs: ["jobs"] as const,
  waiting: ["waiting jobs"] as const,
  shares: ["pool shares"] as const,
  overview: ["overview"] as const,
  workers: ["workers"] as const,
  pools: ["pools"] as const,
  catalogue: ["catalogue"] as const,
};

/** The path of what belongs to a project itself: its settings, members, service accounts. */
export function pathIn(project: string, path: string): string {
  return `/projects/${encodeURIComponent(project)}${path}`;
}

/** The path of an experiment, whose ID is unique within its project. */
export function experimentPath(id: string): string {
  return `/experiments/${encodeURIComponent(id)}`;
}

export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: async ({ signal }) => {
    const session = await get<t.Session>("/session", {}, signal);
    // A page may send its first query before the frame around it has rendered.
    setCsrfToken(session.csrf_token ?? null);
    return session;
  },
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});

/** The ways to log in that the server offers; a login link always works. */
export const loginOptionsQuery = queryOptions({
  queryKey: keys.loginOptions,
  queryFn: ({ signal }) => get<t.LoginOptions>("/session:options", {}, signal),
});

/** Names of the agents and model functions that the workers of the default pool offer. */
export const partsQuery = queryOptions({
  queryKey: keys.catalogue,
  queryFn: async ({ signal }) => {
    const { catalogue } = await get<t.Catalogue>("/catalogue", {}, signal);
    return [...catalogue.agents, ...catalogue.model_functions].map((part) => part.name);
  },
  staleTime: 60_000,
  retry: false,
});

export function experimentsQuery(project: string | null, filter: ExperimentFilter) {
  return infiniteQueryOptions({
    queryKey: [...keys.experiments, project, filter],
    queryFn: ({ signal, pageParam }) =>
      get<t.Page<t.Experiment>>(
        "/experiments",
        { ...filter, project, limit: PAGE_SIZE, cursor: pageParam },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

export function experimentQuery(project: string, id: string) {
  return queryOptions({
    queryKey: keys.experiment(project, id),
    queryFn: ({ signal }) => get<t.ExperimentDetail>(experimentPath(id), { project }, signal),
  });
}

/** Finds an experiment by its ID alone, for addresses that name no project. */
export function findExperiment(id: string): Promise<t.Experiment> {
  return get<t.Experiment>(experimentPath(id));
}

export function findExperimentQuery(id: string) {
  return queryOptions({
    queryKey: keys.experimentById(id),
    queryFn: () => findExperiment(id),
    staleTime: 0,
  });
}

/** All items of a list, page after page. */
export async function everyPage<Item>(
  path: string,
  parameters: Record<string, string | number>,
  signal: AbortSignal,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: t.Page<Item> = await get<t.Page<Item>>(path, { ...parameters, cursor }, signal);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

export function experimentRunsQuery(project: string, id: string) {
  return queryOptions({
    queryKey: keys.experimentRuns(project, id),
    queryFn: async ({ signal }) => {
      const runs = await everyPage<t.Run>(
        `${experimentPath(id)}/runs`,
        { project, limit: 500 },
        signal,
      );
      return runs.sort((a, b) => a.seed - b.seed || a.replicate - b.replicate);
    },
  });
}

export function runQuery(id: string) {
  return queryOptions({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => get<t.RunDetail>(`/runs/${id}`, {}, signal),
  });
}

export function evaluationsQuery(id: string) {
  return queryOptions({
    queryKey: keys.evaluations(id),
    queryFn: ({ signal }) =>
      everyPage<t.Evaluation>(
        `/runs/${id}/evaluations`,
        { limit: 500, sort: "env_step", superseded: "true" },
        signal,
      ),
  });
}

export function snapshotsQuery(id: string) {
  return queryOptions({
    queryKey: keys.snapshots(id),
    queryFn: ({ signal }) =>
      everyPage<t.Snapshot>(`/runs/${id}/snapshots`, { limit: 500, sort: "-env_step" }, signal),
  });
}

export function videosQuery(id: string) {
  return queryOptions({
    queryKey: keys.videos(id),
    queryFn: ({ signal }) =>
      everyPage<t.Artifact>(
        `/runs/${id}/artifacts`,
        { kind: "video", limit: 500, sort: "name" },
        signal,
      ),
  });
}

/** Exports and other files; files of snapshots are listed with their snapshot. */
export function filesQuery(id: string) {
  return queryOptions({
    queryKey: keys.files(id),
    queryFn: ({ signal }) =>
      everyPage<t.Artifact>(`/runs/${id}/artifacts`, { limit: 500, sort: "-created_at" }, signal),
  });
}

/** The URL of a stored file's content. */
export function contentAddress(artifactId: string): string {
  return buildAddress(`/artifacts/${artifactId}/content`);
}

/** The URL of a ZIP archive with all files of a snapshot. */
export function archiveAddress(snapshot: t.Snapshot): string {
  return buildAddress(`/runs/${snapshot.run_id}/snapshots/${snapshot.id}/archive`);
}

export function seriesNamesQuery(id: string) {
  return queryOptions({
    queryKey: keys.seriesNames(id),
    queryFn: ({ signal }) => everyPage<t.SeriesInfo>(`/runs/${id}/series`, { limit: 500 }, signal),
  });
}

export function provenanceQuery(id: string) {
  return queryOptions({
    queryKey: keys.provenance(id),
    queryFn: ({ signal }) => get<t.Provenance>(`/runs/${id}/provenance`, {}, signal),
  });
}

/** Curves on one common grid; the stream continues them after the answer's cursor. */
export function querySeries(query: t.SeriesQuery, signal?: AbortSignal): Promise<t.SeriesResult> {
  return postQuery<t.SeriesResult>("/series:query", query, signal);
}

export function seriesQuery(query: t.SeriesQuery) {
  return queryOptions({
    queryKey: [...keys.curves, query],
    queryFn: ({ signal }) => querySeries(query, signal),
    placeholderData: keepPreviousData,
  });
}

export function logPage(id: string, after: number, signal?: AbortSignal): Promise<t.LogPage> {
  return get<t.LogPage>(`/runs/${id}/log`, { after, limit: 1000 }, signal);
}
