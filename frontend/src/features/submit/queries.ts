/** The requests of the form. */
import { queryOptions } from "@tanstack/react-query";
import { get, post, postQuery } from "@/api/client";
import { everyPage, pathIn } from "@/api/queries";
import type { Catalogue, Preset, SubmissionPreview, SubmittedExperiment } from "@/api/types";
import type { Schema } from "./schema";

export const schemaQuery = queryOptions({
  queryKey: ["definition schema"],
  queryFn: ({ signal }) => get<Schema>("/definitions/schema", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

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
      postQuery<SubmissionPreview>(pathIn(project, "/experiments:preview"), document, signal),
    retry: false,
    staleTime: 10_000,
    refetchInterval: 15_000,
  });
}

export function submitDocument(project: string, document: unknown): Promise<SubmittedExperiment> {
  return post(pathIn(project, "/experiments"), document);
}
