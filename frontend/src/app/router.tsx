import type { QueryClient } from "@tanstack/react-query";
import { createRoute, createRouter, redirect } from "@tanstack/react-router";
import { readBenchmarksSearch } from "@/features/benchmarks/search";
import { readCompareSearch } from "@/features/compare/search";
import { readExperimentSearch } from "@/features/experiment/search";
import { ExperimentsPage } from "@/features/experiments/ExperimentsPage";
import { readExperimentsSearch } from "@/features/experiments/search";
import { readLoginSearch } from "@/features/login/code";
import { LoginPage } from "@/features/login/LoginPage";
import { readQueueSearch } from "@/features/queue/search";
import { readRunSearch } from "@/features/run/search";
import { readRunsSearch } from "@/features/runs/search";
import { readNewExperimentSearch } from "@/features/submit/search";
import { readUsageSearch } from "@/features/usage/usageSearch";
import { getPublicPath } from "@/lib/publicPath";
import { administrationRoutes, managementRoutes } from "./adminRoutes";
import { ErrorPage } from "./ErrorPages";
import { inside, project, root } from "./frames";
import { Home } from "./Home";
import { afterLoading, lazyPage } from "./lazyPages";
import { oldAddresses } from "./oldAddresses";

// Each page is loaded when it is opened; the first ones, and the frame of all, come at once.
const AccountPage = lazyPage(() => import("@/features/account/AccountPage"), "AccountPage");
const OwnTokens = lazyPage(() => import("@/features/credentials/OwnTokens"), "OwnTokens");
const BenchmarksPage = lazyPage(
  () => import("@/features/benchmarks/BenchmarksPage"),
  "BenchmarksPage",
);
const ComparePage = lazyPage(() => import("@/features/compare/ComparePage"), "ComparePage");
const ExperimentPage = lazyPage(
  () => import("@/features/experiment/ExperimentPage"),
  "ExperimentPage",
);
const QueuePage = lazyPage(() => import("@/features/queue/QueuePage"), "QueuePage");
const WorkersPage = lazyPage(() => import("@/features/queue/WorkersPage"), "WorkersPage");
const RunPage = lazyPage(() => import("@/features/run/RunPage"), "RunPage");
const RunsPage = lazyPage(() => import("@/features/runs/RunsPage"), "RunsPage");
const UsagePage = lazyPage(() => import("@/features/usage/UsagePage"), "UsagePage");

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: readLoginSearch,
  component: LoginPage,
});

const home = createRoute({
  getParentRoute: () => inside,
  path: "/",
  component: Home,
});

const projectIndex = createRoute({
  getParentRoute: () => project,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/p/$project/experiments", params });
  },
});

const experiments = createRoute({
  getParentRoute: () => project,
  path: "/experiments",
  validateSearch: readExperimentsSearch,
  component: ExperimentsPage,
});

const experiment = createRoute({
  getParentRoute: () => project,
  path: "/experiments/$experimentId",
  validateSearch: readExperimentSearch,
  component: afterLoading(function Experiment() {
    const params = experiment.useParams();
    const { project: slug, experimentId } = params;
    return <ExperimentPage key={`${slug} ${experimentId}`} project={slug} id={experimentId} />;
  }, ExperimentPage),
});

// The form has a YAML parser, which no other page needs.
const newExperiment = createRoute({
  getParentRoute: () => project,
  path: "/new",
  validateSearch: readNewExperimentSearch,
  component: lazyPage(() => import("@/features/submit/NewExperimentPage"), "NewExperimentPage"),
});

const run = createRoute({
  getParentRoute: () => project,
  path: "/runs/$runId",
  validateSearch: readRunSearch,
  component: afterLoading(function Run() {
    return <RunPage key={run.useParams().runId} id={run.useParams().runId} />;
  }, RunPage),
});

const runs = createRoute({
  getParentRoute: () => project,
  path: "/runs",
  validateSearch: readRunsSearch,
  component: RunsPage,
});

const benchmarks = createRoute({
  getParentRoute: () => project,
  path: "/benchmarks",
  validateSearch: readBenchmarksSearch,
  component: BenchmarksPage,
});

const compare = createRoute({
  getParentRoute: () => project,
  path: "/compare",
  validateSearch: readCompareSearch,
  component: ComparePage,
});

const queue = createRoute({
  getParentRoute: () => project,
  path: "/queue",
  validateSearch: readQueueSearch,
  component: QueuePage,
});

const account = createRoute({
  getParentRoute: () => inside,
  path: "/account",
  component: afterLoading(
    function Account() {
      return (
        <AccountPage>
          <OwnTokens />
        </AccountPage>
      );
    },
    AccountPage,
    OwnTokens,
  ),
});

const workers = createRoute({
  getParentRoute: () => inside,
  path: "/workers",
  component: WorkersPage,
});

const usage = createRoute({
  getParentRoute: () => inside,
  path: "/usage",
  validateSearch: readUsageSearch,
  component: afterLoading(function Usage() {
    const navigate = usage.useNavigate();
    return (
      <UsagePage search={usage.useSearch()} onSearch={(search) => void navigate({ search })} />
    );
  }, UsagePage),
});

const tree = root.addChildren([
  login,
  inside.addChildren([
    home,
    project.addChildren([
      projectIndex,
      experiments,
      experiment,
      newExperiment,
      runs,
      run,
      benchmarks,
      compare,
      queue,
      managementRoutes,
    ]),
    workers,
    usage,
    account,
    administrationRoutes,
    ...oldAddresses,
  ]),
]);

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: getPublicPath() || "/",
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
