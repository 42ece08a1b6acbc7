/** The pages that manage a project or the server, each set below one strip of tabs. */
import { createRoute, redirect } from "@tanstack/react-router";
import { readAuditSearch } from "@/features/admin/auditSearch";
import { administration, project } from "./frames";
import { afterLoading, lazyPage } from "./lazyPages";
import { peopleRoutes } from "./peopleRoutes";
import { ProjectSections } from "./Sections";

// Pages that few visits open are loaded when they are opened.
const AuditPage = lazyPage(() => import("@/features/admin/AuditPage"), "AuditPage");
const MembersPage = lazyPage(() => import("@/features/admin/MembersPage"), "MembersPage");
const ServiceAccountsPage = lazyPage(
  () => import("@/features/credentials/ServiceAccountsPage"),
  "ServiceAccountsPage",
);
const PoolPage = lazyPage(() => import("@/features/pools/PoolPage"), "PoolPage");
const PoolsPage = lazyPage(() => import("@/features/pools/PoolsPage"), "PoolsPage");
const ProjectSettingsPage = lazyPage(
  () => import("@/features/projects/ProjectSettingsPage"),
  "ProjectSettingsPage",
);
const ProjectsPage = lazyPage(() => import("@/features/projects/ProjectsPage"), "ProjectsPage");

const administrationIndex = createRoute({
  getParentRoute: () => administration,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/admin/projects" });
  },
});

const projects = createRoute({
  getParentRoute: () => administration,
  path: "/projects",
  component: ProjectsPage,
});

const pools = createRoute({
  getParentRoute: () => administration,
  path: "/pools",
  component: PoolsPage,
});

const pool = createRoute({
  getParentRoute: () => administration,
  path: "/pools/$pool",
  component: afterLoading(function Pool() {
    const name = pool.useParams().pool;
    return <PoolPage key={name} name={name} />;
  }, PoolPage),
});

const serverAudit = createRoute({
  getParentRoute: () => administration,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: afterLoading(function ServerAudit() {
    const navigate = serverAudit.useNavigate();
    return (
      <AuditPage
        project={null}
        search={readAuditSearch(serverAudit.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  }, AuditPage),
});

const management = createRoute({
  getParentRoute: () => project,
  id: "management",
  component: ProjectSections,
});

const settings = createRoute({
  getParentRoute: () => management,
  path: "/settings",
  component: afterLoading(function Settings() {
    const slug = settings.useParams().project;
    return <ProjectSettingsPage key={slug} slug={slug} />;
  }, ProjectSettingsPage),
});

const members = createRoute({
  getParentRoute: () => management,
  path: "/members",
  component: afterLoading(function Members() {
    const slug = members.useParams().project;
    return <MembersPage key={slug} project={slug} />;
  }, MembersPage),
});

const serviceAccounts = createRoute({
  getParentRoute: () => management,
  path: "/service-accounts",
  component: afterLoading(function ServiceAccounts() {
    const slug = serviceAccounts.useParams().project;
    return <ServiceAccountsPage key={slug} project={slug} />;
  }, ServiceAccountsPage),
});

const projectAudit = createRoute({
  getParentRoute: () => management,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: afterLoading(function ProjectAudit() {
    const navigate = projectAudit.useNavigate();
    return (
      <AuditPage
        project={projectAudit.useParams().project}
        search={readAuditSearch(projectAudit.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  }, AuditPage),
});

export const administrationRoutes = administration.addChildren([
  administrationIndex,
  ...peopleRoutes,
  projects,
  pools,
  pool,
  serverAudit,
]);

export const managementRoutes = management.addChildren([
  settings,
  members,
  serviceAccounts,
  projectAudit,
]);
