import type { Person } from "@/api/types";
import { formatAge, formatDay, formatMoment } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { IconShield } from "@/ui/icons";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./People.module.css";

/** Shows the projects of a person with the roles; the tooltip lists all of them. */
export function Roles({ projects }: Pick<Person, "projects">) {
  if (projects.length === 0) return <span className="faint">none</span>;
  const all = projects.map(({ slug, role }) => `${slug}: ${role}`).join("\n");
  return (
    <span title={all}>
      {projects.map(({ project_id, slug, role }, i) => (
        <span key={project_id}>
          {i > 0 && ", "}
          {slug} <span className={classes.role}>{role}</span>
        </span>
      ))}
    </span>
  );
}

export function AdministratorMark() {
  return (
    <span className={classes.admin}>
      <IconShield size={14} stroke={1.8} /> administrator
    </span>
  );
}

export const peopleColumns: Column<Person>[] = [
  {
    id: "name",
    header: "Login name",
    width: 140,
    cell: ({ name }) => (
      <span className={classes.login} title={name}>
        {name}
      </span>
    ),
  },
  {
    id: "display_name",
    header: "Display name",
    width: "15%",
    hide: "narrow",
    cell: ({ display_name }) =>
      display_name ? <span title={display_name}>{display_name}</span> : <Missing />,
  },
  {
    id: "email",
    header: "E-mail",
    width: "17%",
    hide: "medium",
    cell: ({ email }) => (email ? <span title={email}>{email}</span> : <Missing />),
  },
  { id: "projects", header: "Projects", cell: (person) => <Roles projects={person.projects} /> },
  {
    id: "is_admin",
    header: "Server",
    width: 134,
    hide: "medium",
    cell: ({ is_admin }) => is_admin && <AdministratorMark />,
  },
  {
    id: "state",
    header: "State",
    width: 104,
    cell: ({ state }) => <StateBadge state={state} bare />,
  },
  {
    id: "created_at",
    header: "Since",
    width: 112,
    align: "right",
    hide: "wide",
    cell: ({ created_at }) => <span title={formatMoment(created_at)}>{formatDay(created_at)}</span>,
  },
  {
    id: "last_used_at",
    header: "Last use",
    width: 100,
    align: "right",
    hide: "narrow",
    cell: ({ last_used_at }) =>
      last_used_at === null ? (
        <span className="faint">never</span>
      ) : (
        <span title={formatMoment(last_used_at)}>{formatAge(last_used_at)}</span>
      ),
  },
];

function Missing() {
  return <span className="faint">–</span>;
}
