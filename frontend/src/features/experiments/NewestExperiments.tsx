import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { experimentsQuery } from "@/api/queries";
import type { Experiment } from "@/api/types";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import { experimentColumns } from "./columns";
import classes from "./ExperimentsPage.module.css";

const SHOWN = 20;

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

/** The newest experiments of all projects of the caller. */
export function NewestExperiments() {
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
