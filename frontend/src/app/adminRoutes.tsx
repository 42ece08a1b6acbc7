/** The pages that manage a project or the server, each set below one strip of tabs. */
import { createRoute, redirect } from "@tanstack/react-router";
import { AuditPage } from "@/features/admin/AuditPage";
import { readAuditSearch } from "@/features/admin/auditSearch";
import { MembersPage } from "@/features/admin/MembersPage";
import { ServiceAccountsPage } from "@/features/credentials/ServiceAccountsPage";
import { PoolPage } from "@/features/pools/PoolPage";
import { PoolsPage } from "@/features/pools/PoolsPage";
import { ProjectSettingsPage } from "@/features/projects/ProjectSettingsPage";
import { ProjectsPage } from "@/features/projects/ProjectsPage";
import { administration, project } from "./frames";
import { peopleRoutes } from "./peopleRoutes";
import { ProjectSections } from "./Sections";

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
  component: function Pool() {
    const name = pool.useParams().pool;
    return <PoolPage key={name} name={name} />;
  },
});

const serverAudit = createRoute({
  getParentRoute: () => administration,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: function ServerAudit() {
    const navigate = serverAudit.useNavigate();
    return (
      <AuditPage
        project={null}
        search={readAuditSearch(serverAudit.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  },
});

const management = createRoute({
  getParentRoute: () => project,
  id: "management",
  component: ProjectSections,
});

const settings = createRoute({
  getParentRoute: () => management,
  path: "/settings",
  component: function Settings() {
    const slug = settings.useParams().project;
    return <ProjectSettingsPage key={slug} slug={slug} />;
  },
});

const members = createRoute({
  getParentRoute: () => management,
  path: "/members",
  component: function Members() {
    const slug = members.useParams().project;
    return <MembersPage key={slug} project={slug} />;
  },
});

const serviceAccounts = createRoute({
  getParentRoute: () => management,
  path: "/service-accounts",
  component: function ServiceAccounts() {
    const slug = serviceAccounts.useParams().project;
    return <ServiceAccountsPage key={slug} project={slug} />;
  },
});

const projectAudit = createRoute({
  getParentRoute: () => management,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: function ProjectAudit() {
    const navigate = projectAudit.useNavigate();
    return (
      <AuditPage
        project={projectAudit.useParams().project}
        search={readAuditSearch(projectAudit.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  },
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
