import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { usePermission } from "@/api/access";
import { experimentsQuery, sessionQuery } from "@/api/queries";
import { jobsQuery, type OpenJobs } from "@/api/queueQueries";
import type { Experiment, Job, Membership } from "@/api/types";
import { formatCount } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import { experimentColumns } from "./columns";
import classes from "./ExperimentsPage.module.css";
import { useFreshExperiments } from "./useFreshExperiments";

const SHOWN = 20;

/** All projects of the caller with their open jobs and their newest experiments. */
export function HomePage() {
  const projects = useQuery(sessionQuery).data?.projects ?? [];
  useFreshExperiments("home");
  return (
    <Page title="Home">
      {projects.length === 0 ? (
        <Panel>
          <EmptyState title="You are a member of no project yet">
            Experiments belong to projects. Ask a maintainer of a project, or an administrator of
            the server, to add you; then this page lists it.
          </EmptyState>
        </Panel>
      ) : (
        <>
          <Projects projects={projects} />
          <Newest />
        </>
      )}
    </Page>
  );
}

function Projects({ projects }: { projects: readonly Membership[] }) {
  const navigate = useNavigate();
  const manager = usePermission("server.projects");
  const { data: open } = useQuery(jobsQuery(null));
  const columns = useMemo(() => projectColumns(open), [open]);
  return (
    <Panel
      title="Your projects"
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

function projectColumns(open: OpenJobs | undefined): Column<Membership>[] {
  const jobsIn = (slug: string, states: readonly Job["state"][]) => {
    if (open === undefined) return "–";
    const found = open.jobs.filter((job) => job.project === slug && states.includes(job.state));
    return `${formatCount(found.length)}${states.some((state) => open.cut.has(state)) ? "+" : ""}`;
  };
  const jobs = (id: string, header: string, states: readonly Job["state"][]) => ({
    id,
    header,
    width: 84,
    align: "right" as const,
    cell: (row: Membership) => jobsIn(row.slug, states),
  });
  return [
    {
      id: "project",
      header: "Project",
      cell: (row) => (
        <span className={classes.name}>
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
    jobs("running", "Running", ["starting", "running", "pausing", "cancelling", "preempting"]),
    jobs("waiting", "Waiting", ["queued", "lost"]),
    { ...jobs("paused", "Paused", ["paused"]), hide: "narrow" },
  ];
}

/** Shows the project below the name where the table is too narrow for its column. */
function showProjectBelowName(name: Column<Experiment>): Column<Experiment> {
  const cell = (row: Experiment) => (
    <>
      {name.cell(row)}
      <span className={classes.below}>{row.project}</span>
    </>
  );
  return { ...name, cell };
}

function Newest() {
  const navigate = useNavigate();
  const scheme = useScheme();
  const query = useInfiniteQuery(experimentsQuery(null, {}));
  const rows = useMemo(
    () => query.data?.pages.flatMap((page) => page.items).slice(0, SHOWN) ?? [],
    [query.data],
  );
  const columns = useMemo(() => {
    const shown = experimentColumns(scheme).filter(({ id }) => id !== "id" && id !== "agent");
    const [name, ...rest] = shown;
    const project: Column<Experiment> = {
      id: "project",
      header: "Project",
      width: 104,
      hide: "narrow",
      cell: (row) => <span title={row.project}>{row.project}</span>,
    };
    return name === undefined ? [] : [showProjectBelowName(name), project, ...rest];
  }, [scheme]);
  return (
    <Panel title="Newest experiments" flush>
      <ListFrame query={query} lines={2}>
        {rows.length === 0 ? (
          <EmptyState
            title="No experiments yet"
            command="palestra submit examples/cartpole-dqn.yaml --project SLUG"
          >
            The experiments of all your projects appear here while they train.
          </EmptyState>
        ) : (
          <DataTable
            label="Newest experiments"
            rows={rows}
            columns={columns}
            rowId={(row) => `${row.project} ${row.id}`}
            onOpen={(row) =>
              void navigate({
                to: "/p/$project/experiments/$experimentId",
                params: { project: row.project, experimentId: row.id },
              })
            }
          />
        )}
      </ListFrame>
    </Panel>
  );
}
