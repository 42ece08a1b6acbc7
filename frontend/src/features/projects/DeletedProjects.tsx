import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { deletedProjectsQuery, undeleteProject } from "@/api/projects";
import type { DeletedProject } from "@/api/types";
import { formatBytes, formatCount, formatDay, formatDuration, formatMoment } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { Panel } from "@/ui/Page";
import classes from "./Projects.module.css";
import { useProjectRefresh } from "./useProjectChange";

/** Lists deleted projects that still have content, for administrators; absent if there is none. */
export function DeletedProjects() {
  const query = useQuery(deletedProjectsQuery);
  const refresh = useProjectRefresh();
  const restore = useMutation({
    mutationFn: (slug: string) => undeleteProject(slug),
    onSettled: refresh,
    onSuccess: (project) =>
      notifications.show({ message: `Restored ${project.name}, which is archived` }),
    onError: (error) =>
      notifications.show({ color: "red", title: "Not restored", message: error.message }),
  });
  const columns = useMemo(() => deletedColumns(restore.mutate), [restore.mutate]);
  const projects = query.data ?? [];
  if (projects.length === 0) return null;
  return (
    <Panel
      flush
      title="Deleted"
      aside={<span>hidden from their members, until the content is removed</span>}
    >
      <DataTable
        label="Deleted projects"
        rows={projects}
        columns={columns}
        rowId={(project) => project.id}
      />
    </Panel>
  );
}

function Removal({ project }: { project: DeletedProject }) {
  if (project.removal_started_at !== null)
    return <span title={formatMoment(project.removal_started_at)}>being removed</span>;
  const left = (Date.parse(project.restorable_until) - Date.now()) / 1000;
  return (
    <span title={formatMoment(project.restorable_until)}>
      {left <= 0 ? "due" : `in ${formatDuration(left)}`}
    </span>
  );
}

function deletedColumns(restore: (slug: string) => void): Column<DeletedProject>[] {
  return [
    {
      id: "name",
      header: "Project",
      cell: (project) => (
        <span className={classes.name} title={project.description || project.name}>
          <b className="clip">{project.name}</b>
          <span className="faint mono">{project.slug}</span>
        </span>
      ),
    },
    {
      id: "runs",
      header: "Runs",
      width: 84,
      align: "right",
      hide: "medium",
      cell: (project) => formatCount(project.runs),
    },
    {
      id: "storage",
      header: "Storage",
      width: 104,
      align: "right",
      hide: "medium",
      cell: (project) => formatBytes(project.storage_used),
    },
    {
      id: "deleted",
      header: "Deleted",
      width: 204,
      hide: "narrow",
      cell: (project) => (
        <span title={formatMoment(project.deleted_at)}>
          {formatDay(project.deleted_at)}
          {project.deleted_by && <span className="muted"> by {project.deleted_by}</span>}
        </span>
      ),
    },
    {
      id: "jobs",
      header: "Jobs that still end",
      width: 148,
      align: "right",
      hide: "wide",
      cell: (project) => formatCount(project.unfinished_jobs),
    },
    {
      id: "removal",
      header: "Content goes",
      width: 128,
      cell: (project) => <Removal project={project} />,
    },
    {
      id: "restore",
      header: "",
      width: 104,
      align: "right",
      cell: (project) =>
        project.removal_started_at === null && (
          <Button
            variant="default"
            size="compact-xs"
            aria-label={`Restore ${project.name}`}
            onClick={() => restore(project.slug)}
          >
            Restore
          </Button>
        ),
    },
  ];
}
