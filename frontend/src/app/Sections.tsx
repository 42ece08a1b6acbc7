import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useParams } from "@tanstack/react-router";
import { sessionQuery } from "@/api/queries";
import type { Permission } from "@/api/types";
import classes from "./Sections.module.css";

interface Section {
  to:
    | "/admin/projects"
    | "/admin/pools"
    | "/admin/people"
    | "/admin/audit"
    | "/p/$project/settings"
    | "/p/$project/members"
    | "/p/$project/service-accounts"
    | "/p/$project/audit";
  label: string;
  /** Beginning of the paths of pages that belong to the section and have an address apart. */
  also?: string;
}

const OF_SERVER: readonly (Section & { needs: Permission })[] = [
  { to: "/admin/projects", label: "Projects", needs: "server.projects" },
  { to: "/admin/pools", label: "Pools", needs: "server.pools" },
  { to: "/admin/people", label: "People", needs: "server.users", also: "/admin/invitations" },
  { to: "/admin/audit", label: "Audit log", needs: "server.audit" },
];

/** The pages of a project; an administrator who is no member of it has only some. */
const PROJECT_PAGES: readonly (Section & { managed?: true })[] = [
  { to: "/p/$project/settings", label: "Settings", managed: true },
  { to: "/p/$project/members", label: "Members", managed: true },
  { to: "/p/$project/service-accounts", label: "Service accounts" },
  { to: "/p/$project/audit", label: "Audit log" },
];

/** The pages that manage the server, for its administrators. */
export function ServerSections() {
  const permissions = useQuery(sessionQuery).data?.permissions ?? [];
  const sections = OF_SERVER.filter(({ needs }) => permissions.includes(needs));
  return <Sections title="Server" label="Administration" sections={sections} params={{}} />;
}

/** The pages that manage one project. */
export function ProjectSections() {
  const { project = "" } = useParams({ strict: false });
  const memberships = useQuery(sessionQuery).data?.projects ?? [];
  const isMember = memberships.some((one) => one.slug === project);
  return (
    <Sections
      title={project}
      label={`Management of ${project}`}
      sections={PROJECT_PAGES.filter(({ managed }) => managed || isMember)}
      params={{ project }}
    />
  );
}

interface SectionsProps {
  /** What the pages manage. */
  title: string;
  label: string;
  sections: readonly Section[];
  params: { project?: string };
}

function Sections({ title, label, sections, params }: SectionsProps) {
  const path = useLocation({ select: ({ pathname }) => pathname });
  if (sections.length === 0) return <Outlet />;
  return (
    <>
      <nav className={classes.sections} aria-label={label}>
        <span className={classes.title}>{title}</span>
        {sections.map((section) => (
          <Link
            key={section.to}
            to={section.to}
            params={params as { project: string }}
            search={{}}
            className={classes.section}
            activeOptions={{ includeSearch: false }}
            activeProps={{ "data-active": true }}
            data-active={(section.also && path.startsWith(section.also)) || undefined}
          >
            {section.label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </>
  );
}
