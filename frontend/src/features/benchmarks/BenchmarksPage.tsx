import { Button, Skeleton } from "@mantine/core";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { usePermission } from "@/api/access";
import { ApiError, findFaultAt } from "@/api/client";
import { everyRunQuery, statisticsQuery } from "@/api/statisticsQueries";
import type { StatisticsQuery, StatisticsResult } from "@/api/types";
import { writeSubmitCommand } from "@/lib/commands";
import { nameExperiments } from "@/lib/experimentNames";
import { findQueryError } from "@/lib/outage";
import { tidy } from "@/lib/search";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { Cells } from "./Cells";
import { Controls } from "./Controls";
import { buildCells } from "./cells";
import { Figures } from "./Figures";
import {
  type BenchmarksChange,
  type BenchmarksSearch,
  buildCellsQuery,
  buildFiguresQuery,
  readBenchmarksSearch,
  readFields,
} from "./search";

const route = getRouteApi("/inside/p/$project/benchmarks");
/** Refusals of statistics over environments that a normalisation solves, as the page says them. */
const OF_SCALE: Readonly<Record<string, { title: string; text: string }>> = {
  mixed_environments: {
    title: "Which normalisation?",
    text: "The runs are of several environments, whose returns have different scales.",
  },
  missing_reference: {
    title: "No reference scores",
    text: "There is no reference score of any environment of these runs.",
  },
  equal_scores: {
    title: "All scores are the same",
    text: "In no environment have these runs a lowest and a highest score.",
  },
};

/** Environments, groups and seeds with their scores, and the statistics that papers report. */
export function BenchmarksPage() {
  const search = readBenchmarksSearch(route.useSearch());
  const { project } = route.useParams();
  const navigate = useNavigate();
  const { reason } = usePermission("run.submit", project);
  const by = useMemo(() => readFields(search.by), [search.by]);
  const ofCells = buildCellsQuery(project, search);
  const cells = useQuery(statisticsQuery(ofCells));
  const ofFigures = buildFiguresQuery(project, search, cells.data?.groups.length ?? 0);
  const figures = useQuery({
    ...statisticsQuery(ofFigures),
    enabled: cells.data !== undefined,
  });
  const runs = useQuery(everyRunQuery(project, search.filter ?? "", ["env", ...by]));
  const problem = findQueryError(cells);
  const faults = {
    filter: findFaultAt(problem, "/filter"),
    by: problem instanceof ApiError ? findGroupFault(problem) : undefined,
  };
  const table = useMemo(
    () => (cells.data && runs.data ? buildCells(runs.data, cells.data, by) : null),
    [cells.data, runs.data, by],
  );
  const change = (part: BenchmarksChange) =>
    void navigate({
      to: "/p/$project/benchmarks",
      params: { project },
      search: tidy({ ...search, ...part }) as BenchmarksSearch,
      replace: true,
    });
  return (
    <Page title="Benchmarks">
      <Panel>
        <Controls search={search} faults={faults} onChange={change} />
      </Panel>
      {problem !== null && cells.isError ? (
        <Panel>
          {problem instanceof ApiError && problem.code === "empty_group" ? (
            <Nothing
              filtered={search.filter !== undefined}
              onClear={() => change({ filter: undefined })}
            />
          ) : faults.filter !== undefined || faults.by !== undefined ? (
            <EmptyState title="The query cannot be answered">
              Correct it where the message points.
            </EmptyState>
          ) : (
            <Failure error={problem} retry={() => void cells.refetch()} />
          )}
        </Panel>
      ) : table === null || cells.data === undefined ? (
        <Panel>
          <Skeleton height={120} />
        </Panel>
      ) : (
        <>
          <Cells
            project={project}
            table={table}
            query={ofCells}
            refused={reason}
            notes={cells.data.notes
              .filter((note) => note.includes("left out"))
              .map((note) => nameExperiments(note, table.names))}
          />
          <Statistics
            query={figures}
            names={table.names}
            onMinMax={() => change({ normalise: "min_max" })}
            body={ofFigures}
          />
        </>
      )}
    </Page>
  );
}

function findGroupFault(problem: ApiError): string | undefined {
  return problem.errors.find((one) => one.pointer.startsWith("/group_by"))?.message;
}

interface StatisticsProps {
  query: UseQueryResult<StatisticsResult>;
  names: ReadonlyMap<string, string>;
  body: StatisticsQuery;
  onMinMax(): void;
}

function Statistics({ query, names, body, onMinMax }: StatisticsProps) {
  const problem = findQueryError(query);
  if (problem !== null && query.isError) {
    const ofScale = problem instanceof ApiError ? OF_SCALE[problem.code] : undefined;
    return (
      <Panel title="Statistics over environments">
        {ofScale ? (
          <EmptyState
            title={ofScale.title}
            actions={
              body.normalisation === null && (
                <Button variant="default" onClick={onMinMax}>
                  Scale by the lowest and highest of these runs
                </Button>
              )
            }
          >
            {ofScale.text} Choose a normalisation above, or narrow the filter to one environment.
          </EmptyState>
        ) : (
          <Failure small error={problem} retry={() => void query.refetch()} />
        )}
      </Panel>
    );
  }
  if (query.data === undefined)
    return (
      <Panel title="Aggregate scores">
        <Skeleton height={200} />
      </Panel>
    );
  return <Figures query={body} result={query.data} names={names} />;
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear(): void }) {
  return filtered ? (
    <EmptyState
      title="No run with a score matches"
      actions={
        <Button variant="default" onClick={onClear}>
          Clear the filter
        </Button>
      }
    >
      Widen the filter, or wait for the first evaluation of its runs.
    </EmptyState>
  ) : (
    <EmptyState title="No scores yet" command={writeSubmitCommand("0-4")}>
      A benchmark is a table of agents and environments: submit experiments with several seeds each.
      Their scores, intervals and profiles appear here with the first evaluations.
    </EmptyState>
  );
}
