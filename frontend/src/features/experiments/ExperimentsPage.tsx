import { Skeleton } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { type ApiError, findFaultAt } from "@/api/client";
import { experimentsQuery } from "@/api/queries";
import { thresholdsQuery } from "@/api/thresholds";
import type { Experiment, Threshold } from "@/api/types";
import { writeSubmitCommand } from "@/lib/commands";
import { findQueryError } from "@/lib/outage";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { FILTER_POINTER } from "@/ui/FilterInput";
import { NewExperimentButton } from "@/ui/NewExperimentButton";
import { Page, Panel } from "@/ui/Page";
import { BelowList, ShowMore } from "@/ui/ShowMore";
import { useScheme } from "@/ui/scheme";
import { CompareButton } from "./CompareButton";
import { experimentColumns, selectColumn } from "./columns";
import classes from "./ExperimentsPage.module.css";
import { Filters } from "./Filters";
import { type ExperimentsSearch, readExperimentsSearch } from "./search";
import { ThresholdPicker } from "./ThresholdPicker";
import {
  addThresholds,
  chooseThresholds,
  listThresholdKeys,
  THRESHOLD_WIDTH,
  thresholdColumn,
  writeThresholds,
} from "./thresholdColumns";
import { useFreshExperiments } from "./useFreshExperiments";

const route = getRouteApi("/inside/p/$project/experiments");
/** Width in pixels that the columns without thresholds need. */
const ROOM = 1_000;
const SORTABLE = ["name", "created_at"];
const NO_THRESHOLDS: readonly Threshold[] = [];

export function ExperimentsPage() {
  // The router keeps unknown parameters of the URL, which the server would refuse.
  const search = readExperimentsSearch(route.useSearch());
  const { project } = route.useParams();
  const navigate = useNavigate();
  const submit = usePermission("run.submit", project);
  const scheme = useScheme();
  const thresholds = useQuery(thresholdsQuery(project)).data ?? NO_THRESHOLDS;
  const { reached, ...wanted } = search;
  const sort = search.sort ?? "-created_at";
  const shown = useMemo(
    () => chooseThresholds(thresholds, reached, sort),
    [thresholds, reached, sort],
  );
  const asked = listThresholdKeys(shown);
  const query = useInfiniteQuery(
    experimentsQuery(project, asked.length > 0 ? { ...wanted, columns: asked } : wanted),
  );
  const problem = findQueryError(query);
  const fault = findFaultAt(problem, FILTER_POINTER);
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const columns = useMemo(
    () => [selectColumn(selected, setSelected), ...addThresholds(experimentColumns(scheme), shown)],
    [scheme, selected, shown],
  );
  const sortable = useMemo(
    () => [...SORTABLE, ...shown.map((one) => thresholdColumn(one).id)],
    [shown],
  );
  useFreshExperiments("experiments");
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
  const filtered = Object.keys(wanted).some((key) => key !== "sort");
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
          <ThresholdPicker
            thresholds={thresholds}
            shown={shown.map((one) => one.name)}
            onChange={(names) => change({ reached: writeThresholds(names) })}
          />
          <NewExperimentButton project={project} reason={submit.reason} />
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
            minWidth={ROOM + THRESHOLD_WIDTH * shown.length}
            onOpen={open}
            sorting={{
              state: order,
              sortable,
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
  const { reason } = usePermission("run.submit", project);
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
      actions={<NewExperimentButton project={project} reason={reason} />}
      command={writeSubmitCommand("0-2")}
    >
      Choose an environment and an agent with “New experiment”, or submit a file with the command:
      the runs appear here while they train. The same definition always gets the same ID, so
      submitting twice adds nothing but missing seeds.
    </EmptyState>
  );
}
