import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  redirect,
} from "@tanstack/react-router";
import { ApiError } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { ExperimentPage } from "@/features/experiment/ExperimentPage";
import { readExperimentSearch } from "@/features/experiment/search";
import { ExperimentsPage } from "@/features/experiments/ExperimentsPage";
import { readExperimentsSearch } from "@/features/experiments/search";
import { LoginPage } from "@/features/login/LoginPage";
import { QueuePage } from "@/features/queue/QueuePage";
import { WorkersPage } from "@/features/queue/WorkersPage";
import { RunPage } from "@/features/run/RunPage";
import { readRunSearch } from "@/features/run/search";
import { ErrorPage, NotFound } from "./ErrorPages";
import { Shell } from "./Shell";

interface Context {
  client: QueryClient;
}

const root = createRootRouteWithContext<Context>()({
  notFoundComponent: NotFound,
  errorComponent: ErrorPage,
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (search: Record<string, unknown>) =>
    typeof search.to === "string" ? { to: search.to } : {},
  component: LoginPage,
});

const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  component: Shell,
  errorComponent: ErrorPage,
  beforeLoad: async ({ context, location }) => {
    if (location.hash.startsWith("code="))
      throw redirect({ to: "/login", hash: location.hash, search: {} });
    try {
      await context.client.ensureQueryData(sessionQuery);
    } catch (error) {
      const known = error instanceof ApiError && (error.status === 401 || error.status === 403);
      if (!known) throw error;
      const search = location.pathname === "/" ? {} : { to: location.href };
      throw redirect({ to: "/login", search });
    }
  },
});

const home = createRoute({
  getParentRoute: () => inside,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/experiments" });
  },
});

const experiments = createRoute({
  getParentRoute: () => inside,
  path: "/experiments",
  validateSearch: readExperimentsSearch,
  component: ExperimentsPage,
});

const experiment = createRoute({
  getParentRoute: () => inside,
  path: "/experiments/$experimentId",
  validateSearch: readExperimentSearch,
  component: function Experiment() {
    return (
      <ExperimentPage
        key={experiment.useParams().experimentId}
        id={experiment.useParams().experimentId}
      />
    );
  },
});

const run = createRoute({
  getParentRoute: () => inside,
  path: "/runs/$runId",
  validateSearch: readRunSearch,
  component: function Run() {
    return <RunPage key={run.useParams().runId} id={run.useParams().runId} />;
  },
});

const queue = createRoute({ getParentRoute: () => inside, path: "/queue", component: QueuePage });
const workers = createRoute({
  getParentRoute: () => inside,
  path: "/workers",
  component: WorkersPage,
});

const tree = root.addChildren([
  login,
  inside.addChildren([home, experiments, experiment, run, queue, workers]),
]);

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { client },
    // A page that fails is replaced within the shell.
    defaultErrorComponent: ErrorPage,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
