/** The schema from which the form is made. */
import { queryOptions } from "@tanstack/react-query";
import { get } from "@/api/client";
import type { Schema } from "./schema";

export const schemaQuery = queryOptions({
  queryKey: ["definition schema"],
  queryFn: ({ signal }) => get<Schema>("/definitions/schema", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});
