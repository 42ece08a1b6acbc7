/** The routes that other routes lie in: the root, the shell of the dashboard, a project. */
import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute } from "@tanstack/react-router";
import { ErrorPage, NoProject, NotFound } from "./ErrorPages";
import { requireProject, requireSession } from "./guards";
import { ProjectScope } from "./ProjectScope";
import { ServerSections } from "./Sections";
import { Shell } from "./Shell";

interface Context {
  client: QueryClient;
}

export const root = createRootRouteWithContext<Context>()({
  notFoundComponent: NotFound,
  errorComponent: ErrorPage,
});

export const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  component: Shell,
  errorComponent: ErrorPage,
  beforeLoad: ({ context, location }) => requireSession(context.client, location),
});

export const project = createRoute({
  getParentRoute: () => inside,
  path: "/p/$project",
  component: ProjectScope,
  notFoundComponent: NoProject,
  // The shell stays where a loader finds nothing, not where `beforeLoad` does.
  loader: ({ context, params, location }) =>
    requireProject(context.client, params.project, location),
});

export const administration = createRoute({
  getParentRoute: () => inside,
  path: "/admin",
  component: ServerSections,
});
