import { Button, Skeleton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { type ApiError, findFaultAt } from "@/api/client";
import { experimentsQuery } from "@/api/queries";
import type { Experiment } from "@/api/types";
import { findQueryError } from "@/lib/outage";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { FILTER_POINTER } from "@/ui/FilterInput";
import { IconPlus } from "@/ui/icons";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { BelowList, ShowMore } from "@/ui/ShowMore";
import { useScheme } from "@/ui/scheme";
import { CompareButton } from "./CompareButton";
import { experimentColumns, selectColumn } from "./columns";
import classes from "./ExperimentsPage.module.css";
import { Filters } from "./Filters";
import { type ExperimentsSearch, readExperimentsSearch } from "./search";
import { useFreshExperiments } from "./useFreshExperiments";

const route = getRouteApi("/inside/p/$project/experiments");
const SUBMIT = "palestra submit examples/cartpole-dqn.yaml --seeds 0-2";
const SORTABLE = ["name", "created_at"];

export function ExperimentsPage() {
  // The router keeps unknown parameters of the URL, which the server would refuse.
  const search = readExperimentsSearch(route.useSearch());
  const { project } = route.useParams();
  const navigate = useNavigate();
  const scheme = useScheme();
  const query = useInfiniteQuery(experimentsQuery(project, search));
  const problem = findQueryError(query);
  const fault = findFaultAt(problem, FILTER_POINTER);
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const columns = useMemo(
    () => [selectColumn(selected, setSelected), ...experimentColumns(scheme)],
    [scheme, selected],
  );
  useFreshExperiments("experiments");
  const sort = search.sort ?? "-created_at";
  const order = [{ id: sort.replace("-", ""), desc: sort.startsWith("-") }];
  const change = (part: Partial<ExperimentsSearch>) =>
    void navigate({
      to: "/p/$project/experiments",
      params: { project },
      search: { ...search, ...part } as ExperimentsSearch,
      replace: true,
    });
  const open = (row: Experiment) =>
    void navigate({
      to: "/p/$project/experiments/$experimentId",
      params: { project, experimentId: row.id },
    });
  const filtered = Object.keys(search).some((key) => key !== "sort");
  return (
    <Page
      title="Experiments"
      actions={
        <>
          <CompareButton
            project={project}
            experiments={[...selected]}
            onClear={() => setSelected(new Set())}
          />
          <NewExperiment project={project} />
        </>
      }
    >
      <Panel
        flush
        title={<Filters search={search} fault={fault} onChange={change} />}
        aside={<Count rows={rows} more={query.hasNextPage} />}
        className={classes.panel}
      >
        {fault !== undefined ? (
          <EmptyState title="The filter cannot be read">
            Correct it where the message points, or remove it to see all experiments.
          </EmptyState>
        ) : problem !== null && query.data === undefined ? (
          <Failure error={problem as ApiError} retry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Nothing
            project={project}
            filtered={filtered}
            onClear={() =>
              void navigate({ to: "/p/$project/experiments", params: { project }, search: {} })
            }
          />
        ) : (
          <DataTable
            label="Experiments"
            rows={rows}
            columns={columns}
            rowId={(row) => row.id}
            onOpen={open}
            sorting={{
              state: order,
              sortable: SORTABLE,
              onChange: ([first]) =>
                change({
                  sort: (first
                    ? `${first.desc ? "-" : ""}${first.id}`
                    : undefined) as ExperimentsSearch["sort"] & string,
                }),
            }}
            footer={<ShowMore query={query} />}
          />
        )}
      </Panel>
    </Page>
  );
}

function Count({ rows, more }: { rows: readonly Experiment[]; more: boolean }) {
  return (
    <span className="faint">{rows.length > 0 ? `${rows.length}${more ? "+" : ""} shown` : ""}</span>
  );
}

function Loading() {
  return (
    <div className={classes.loading} aria-busy="true">
      {Array.from({ length: 6 }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
        <Skeleton key={i} height={14} radius="sm" width={`${88 - i * 7}%`} />
      ))}
    </div>
  );
}

interface NothingProps {
  project: string;
  filtered: boolean;
  onClear(): void;
}

function Nothing({ project, filtered, onClear }: NothingProps) {
  if (filtered) {
    return (
      <>
        <EmptyState title="No experiment matches">
          Remove a part of the filter, or include archived experiments.
        </EmptyState>
        <BelowList onClick={onClear}>Clear the filter</BelowList>
      </>
    );
  }
  return (
    <EmptyState
      title="No experiments yet"
      actions={<NewExperiment project={project} />}
      command={`${SUBMIT} --server ${window.location.origin}`}
    >
      Choose an environment and an agent with “New experiment”, or submit a file with the command:
      the runs appear here while they train. The same definition always gets the same ID, so
      submitting twice adds nothing but missing seeds.
    </EmptyState>
  );
}

/** Leads to the form, for those who may submit to the project. */
function NewExperiment({ project }: { project: string }) {
  const { reason } = usePermission("run.submit", project);
  const icon = <IconPlus size={15} />;
  if (reason !== null)
    return (
      <Permitted reason={reason}>
        <Button leftSection={icon}>New experiment</Button>
      </Permitted>
    );
  return (
    <Button
      leftSection={icon}
      renderRoot={(props) => <Link to="/p/$project/new" params={{ project }} {...props} />}
    >
      New experiment
    </Button>
  );
}
