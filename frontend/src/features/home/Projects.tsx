import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { usePermission } from "@/api/access";
import { sessionQuery } from "@/api/queries";
import type { Membership, Overview } from "@/api/types";
import { formatCount } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { Panel } from "@/ui/Page";
import classes from "./Home.module.css";

type Numbers = Overview["projects"][number];

interface ProjectsProps {
  projects: readonly Membership[];
  numbers: readonly Numbers[];
}

/** The projects of the caller with the numbers of their unfinished jobs. */
export function Projects({ projects, numbers }: ProjectsProps) {
  const navigate = useNavigate();
  const manager = usePermission("server.projects");
  const single = useQuery(sessionQuery).data?.projects.length === 1;
  const columns = useMemo(
    () => projectColumns(new Map(numbers.map((one) => [one.project, one]))),
    [numbers],
  );
  return (
    <Panel
      title={single ? "Your project" : "Your projects"}
      aside={manager.allowed && <Link to="/admin/projects">All projects of the server</Link>}
      flush
    >
      <DataTable
        label="Your projects"
        rows={projects}
        columns={columns}
        rowId={(row) => row.project_id}
        onOpen={({ slug }) =>
          void navigate({ to: "/p/$project/experiments", params: { project: slug } })
        }
      />
    </Panel>
  );
}

function projectColumns(numbers: ReadonlyMap<string, Numbers>): Column<Membership>[] {
  const jobs = (id: "running" | "waiting" | "paused", header: string) => ({
    id,
    header,
    width: 84,
    align: "right" as const,
    cell: (row: Membership) => formatCount(numbers.get(row.slug)?.[id]),
  });
  return [
    {
      id: "project",
      header: "Project",
      cell: (row) => (
        <span className={classes.project}>
          <Link to="/p/$project/experiments" params={{ project: row.slug }}>
            {row.name}
          </Link>
          {row.archived && <span className="faint">archived</span>}
        </span>
      ),
    },
    {
      id: "slug",
      header: "Slug",
      width: 160,
      hide: "narrow",
      cell: (row) => <span className="muted mono">{row.slug}</span>,
    },
    { id: "role", header: "Your role", width: 112, hide: "narrow", cell: (row) => row.role },
    jobs("running", "Running"),
    jobs("waiting", "Waiting"),
    { ...jobs("paused", "Paused"), hide: "narrow" },
  ];
}
