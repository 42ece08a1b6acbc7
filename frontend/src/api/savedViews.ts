/** The requests about saved views of the page of runs. */
import { queryOptions } from "@tanstack/react-query";
import { get, patch, post, remove } from "./client";
import { everyPage, keys } from "./queries";
import type { RunsPageState, SavedView, SavedViewDetail, ViewVisibility } from "./types";

/** The caller's views and those that others share with the project, by name. */
export function savedViewsQuery(project: string) {
  return queryOptions({
    queryKey: [...keys.savedViews, project],
    queryFn: ({ signal }) => everyPage<SavedView>("/views", { project, limit: 500 }, signal),
  });
}

export function savedViewQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.savedViews, "one", id],
    queryFn: ({ signal }) => get<SavedViewDetail>(`/views/${encodeURIComponent(id)}`, {}, signal),
  });
}

export interface NewView {
  name: string;
  visibility: ViewVisibility;
  state: Partial<RunsPageState>;
}

export function saveView(project: string, view: NewView): Promise<SavedViewDetail> {
  return post<SavedViewDetail>("/views", view, { project });
}

export function changeView(id: string, change: Partial<NewView>): Promise<SavedViewDetail> {
  return patch<SavedViewDetail>(`/views/${encodeURIComponent(id)}`, change);
}

export function deleteView(id: string): Promise<void> {
  return remove(`/views/${encodeURIComponent(id)}`);
}
