import { SegmentedControl } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { listMeasures, type Measures, readScore } from "@/api/definition";
import type { ExperimentDetail, Run } from "@/api/types";
import { chooseMemberColor } from "@/lib/color";
import { formatValue } from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Panel } from "@/ui/Page";
import { StateCounts } from "@/ui/StateBadge";
import { useScheme } from "@/ui/scheme";
import classes from "./RunsPanel.module.css";
import { runColumns } from "./runColumns";
import { SeedMatrix } from "./SeedMatrix";
import type { ChangeSearch, ExperimentSearch } from "./search";

const TILES_FROM = 13;

interface RunsPanelProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
  search: ExperimentSearch;
  change: ChangeSearch;
}

/** Seeds and their states: a table for a few, tiles for many. */
export function RunsPanel({ experiment, runs, search, change }: RunsPanelProps) {
  const scheme = useScheme();
  const navigate = useNavigate();
  const view = search.runs ?? (runs.length >= TILES_FROM ? "tiles" : "table");
  const counts = useMemo(() => countStates(runs), [runs]);
  const columns = useMemo(() => {
    const hidden = new Set(search.hide);
    const toggle = (seed: number) => {
      const next = hidden.has(seed) ? [...hidden].filter((one) => one !== seed) : [...hidden, seed];
      change({ hide: next.length > 0 ? next : undefined });
    };
    const color = new Map(
      runs.map((run, index) => [
        run.id,
        chooseMemberColor(experiment.id, index, runs.length, scheme),
      ]),
    );
    return runColumns(
      (run) => color.get(run.id) ?? "",
      hidden,
      toggle,
      listMeasures(experiment.definition),
    );
  }, [runs, experiment.id, experiment.definition, scheme, search.hide, change]);
  const open = (run: Run) =>
    void navigate({
      to: "/p/$project/runs/$runId",
      params: { project: run.project, runId: run.id },
    });
  return (
    <Panel
      title="Seeds"
      flush
      aside={
        <>
          <StateCounts counts={counts} />
          <SegmentedControl
            aria-label="Show seeds as"
            data={[
              { value: "table", label: "Table" },
              { value: "tiles", label: "Tiles" },
              { value: "matrix", label: "Matrix" },
            ]}
            value={view}
            onChange={(runs_) => change({ runs: runs_ as typeof view })}
          />
        </>
      }
    >
      {runs.length === 0 ? (
        <EmptyState small title="No run yet" command={`palestra submit FILE --seeds 0-4`}>
          Submit the same definition with more seeds: they join this experiment.
        </EmptyState>
      ) : view === "table" ? (
        <DataTable
          label="Runs"
          rows={runs}
          columns={columns}
          rowId={(run) => run.id}
          onOpen={open}
        />
      ) : view === "matrix" ? (
        <SeedMatrix experiment={experiment} runs={runs} />
      ) : (
        <ol className={classes.tiles}>
          {runs.map((run, index) => (
            <Tile
              key={run.id}
              run={run}
              measures={listMeasures(experiment.definition)}
              color={chooseMemberColor(experiment.id, index, runs.length, scheme)}
            />
          ))}
        </ol>
      )}
    </Panel>
  );
}

function Tile({ run, measures, color }: { run: Run; measures: Measures; color: string }) {
  const score = run.latest_evaluation ? readScore(run.latest_evaluation, measures) : null;
  const { share, text, hint } = computeProgress({
    state: run.state,
    cause: run.cause,
    fraction: run.progress.fraction,
  });
  const why = run.failure === null ? "" : `, ${run.failure.message}`;
  const latest = score === null ? "" : `, latest evaluation ${formatValue(score)}`;
  const title = `seed ${run.seed}: ${run.state}${why}, ${hint ?? text}${latest}`;
  return (
    <li>
      <Link
        to="/p/$project/runs/$runId"
        params={{ project: run.project, runId: run.id }}
        className={classes.tile}
        data-state={run.state}
        title={title}
        aria-label={title}
      >
        <span className={classes.fill} style={{ width: `${(share ?? 0) * 100}%` }} />
        <span className={classes.seed}>
          <i style={{ background: color }} />
          {run.seed}
        </span>
        <span className={classes.score}>
          {run.state === "failed" ? "failed" : score === null ? run.state : formatValue(score, 3)}
        </span>
      </Link>
    </li>
  );
}

function countStates(runs: readonly Run[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const run of runs) counts[run.state] = (counts[run.state] ?? 0) + 1;
  return counts;
}
