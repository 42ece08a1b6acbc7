/** Requests about projects themselves: what they are called, hold and may hold. */
import { queryOptions } from "@tanstack/react-query";
import { get, patch, post, remove } from "./client";
import { everyPage, pathIn } from "./queries";
import type { DeletedProject, Project, ProjectChange, ProjectRequest } from "./types";

export const projectKeys = {
  all: ["projects"] as const,
  deleted: ["projects", "deleted"] as const,
  one: (slug: string) => ["projects", "one", slug] as const,
};

/** The caller's projects; all projects for an administrator of the server. */
export const projectsQuery = queryOptions({
  queryKey: projectKeys.all,
  queryFn: ({ signal }) => everyPage<Project>("/projects", { limit: 500 }, signal),
});

export function projectQuery(slug: string) {
  return queryOptions({
    queryKey: projectKeys.one(slug),
    queryFn: ({ signal }) => get<Project>(pathIn(slug, ""), {}, signal),
  });
}

/** Deleted projects whose content is not removed yet; for administrators of the server. */
export const deletedProjectsQuery = queryOptions({
  queryKey: projectKeys.deleted,
  queryFn: ({ signal }) => everyPage<DeletedProject>("/projects:deleted", { limit: 500 }, signal),
});

export function createProject(request: ProjectRequest): Promise<Project> {
  return post<Project>("/projects", request);
}

export function changeProject(slug: string, change: ProjectChange): Promise<Project> {
  return patch<Project>(pathIn(slug, ""), change);
}

export function archiveProject(slug: string): Promise<Project> {
  return post<Project>(pathIn(slug, ":archive"));
}

/** Opens an archived project again. */
export function restoreProject(slug: string): Promise<Project> {
  return post<Project>(pathIn(slug, ":restore"));
}

/** Deletes an archived project; `confirm` is the slug as the user typed it. */
export function deleteProject(slug: string, confirm: string): Promise<void> {
  return remove(pathIn(slug, ""), { confirm });
}

/** Restores a deleted project, which is archived then. */
export function undeleteProject(slug: string): Promise<Project> {
  return post<Project>(pathIn(slug, ":undelete"));
}
