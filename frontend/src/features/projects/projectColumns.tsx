import { Link } from "@tanstack/react-router";
import type { Project } from "@/api/types";
import { formatBytes, formatCount, formatDay, formatMoment } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { Meter } from "@/ui/Meter";
import classes from "./Projects.module.css";

/** The used storage and its limit, for example `1.5 GiB of 2.0 GiB`. */
export function formatStorage({ storage_used, storage_limit }: Project): string {
  const used = formatBytes(storage_used);
  return storage_limit === null ? used : `${used} of ${formatBytes(storage_limit)}`;
}

export function projectColumns(): Column<Project>[] {
  const amount = (id: "members" | "experiments" | "runs", header: string) => ({
    id,
    header,
    width: 104,
    align: "right" as const,
    sort: (project: Project) => project[id],
    cell: (project: Project) => formatCount(project[id]),
  });
  return [
    {
      id: "name",
      header: "Project",
      sort: ({ name }) => name.toLowerCase(),
      cell: (project) => (
        <span className={classes.name} title={project.description || project.name}>
          <Link to="/p/$project/settings" params={{ project: project.slug }}>
            {project.name}
          </Link>
          <span className="faint mono">{project.slug}</span>
        </span>
      ),
    },
    amount("members", "Members"),
    { ...amount("experiments", "Experiments"), width: 116, hide: "narrow" },
    { ...amount("runs", "Runs"), hide: "medium" },
    {
      id: "storage",
      header: "Storage",
      width: 216,
      hide: "narrow",
      sort: ({ storage_used }) => storage_used,
      cell: (project) => (
        <span className={classes.storage}>
          <span>{formatStorage(project)}</span>
          <Meter
            used={project.storage_used}
            limit={project.storage_limit}
            label={`Storage of ${project.name}`}
            text={formatStorage(project)}
          />
        </span>
      ),
    },
    {
      id: "role",
      header: "Your role",
      width: 116,
      hide: "medium",
      cell: ({ role }) => role ?? <span className="faint">not a member</span>,
    },
    {
      id: "created",
      header: "Created",
      width: 124,
      align: "right",
      hide: "wide",
      sort: ({ created_at }) => created_at,
      cell: ({ created_at }) => (
        <span title={formatMoment(created_at)}>{formatDay(created_at)}</span>
      ),
    },
  ];
}
