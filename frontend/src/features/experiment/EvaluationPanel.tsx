import { SegmentedControl, Skeleton, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Suspense, useMemo } from "react";
import type { ApiError } from "@/api/client";
import { reading } from "@/api/definition";
import { seriesQuery } from "@/api/queries";
import type { ExperimentDetail, Run } from "@/api/types";
import { Plot } from "@/charts";
import { clock, compact, value } from "@/lib/format";
import { Empty, Failure } from "@/ui/Empty";
import { Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import classes from "./ExperimentPage.module.css";
import { evaluationPlot, evaluationRequest } from "./evaluationPlot";
import { AXES, type ChangeSearch, type ExperimentSearch } from "./search";

const AXIS_LABELS = { env_step: "env steps", update: "updates", episode: "episodes", wall: "time" } as const;
const HEIGHT = 320;

interface EvaluationPanelProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
  search: ExperimentSearch;
  change: ChangeSearch;
}

/** The learning curve: evaluation return, or metric, of every seed, their mean, and its 95 % interval. */
export function EvaluationPanel({ experiment, runs, search, change }: EvaluationPanelProps) {
  const scheme = useScheme();
  const { counter, score } = reading(experiment.definition);
  const axis = search.x ?? counter;
  const evaluated = useMemo(() => runs.filter((run) => run.latest_evaluation !== null), [runs]);
  const shown = useMemo(() => evaluated.filter((run) => !search.hide?.includes(run.seed)), [evaluated, search.hide]);
  const request = useMemo(() => evaluationRequest(experiment, shown, axis), [experiment, shown, axis]);
  const query = useQuery({ ...seriesQuery(request), enabled: shown.length > 0 });
  const seeds = search.seeds !== "hide";
  const plot = useMemo(
    () => (query.data ? evaluationPlot(query.data, experiment.id, runs, scheme, seeds) : null),
    [query.data, experiment.id, runs, scheme, seeds],
  );
  const zoomed = search.start !== undefined || search.end !== undefined;
  return (
    <Panel
      title={`Evaluation ${score}`}
      aside={
        <>
          {zoomed && (
            <button type="button" className={classes.link} onClick={() => change({ start: undefined, end: undefined })}>
              Reset zoom
            </button>
          )}
          <Switch
            label="Seeds"
            checked={seeds}
            onChange={(e) => change({ seeds: e.currentTarget.checked ? undefined : "hide" })}
          />
          <SegmentedControl
            aria-label="X axis"
            data={AXES.map((one) => ({ value: one, label: AXIS_LABELS[one] }))}
            value={axis}
            onChange={(x) =>
              change({ x: x === counter ? undefined : (x as typeof axis), start: undefined, end: undefined })
            }
          />
        </>
      }
    >
      {query.isError && !plot ? (
        <Failure small error={query.error as ApiError} retry={() => void query.refetch()} />
      ) : evaluated.length === 0 ? (
        <Empty small title="No evaluation yet">
          {firstEvaluation(experiment)}
        </Empty>
      ) : plot === null ? (
        <Skeleton height={HEIGHT} />
      ) : (
        <Suspense fallback={<Skeleton height={HEIGHT} />}>
          <Plot
            {...plot}
            label={`Mean evaluation ${score} of ${shown.length} seeds over ${AXIS_LABELS[axis]}`}
            testId="evaluation-chart"
            height={HEIGHT}
            scheme={scheme}
            xFormat={axis === "wall" ? clock : compact}
            yFormat={(y) => value(y, 4)}
            onZoom={(range) => change({ start: round(range?.start), end: round(range?.end) })}
            range={{ start: search.start, end: search.end }}
          />
          <Legend shown={shown.length} seeds={seeds} fewer={plot.series.some((one) => one.dash)} />
        </Suspense>
      )}
    </Panel>
  );
}

function Legend({ shown, seeds, fewer }: { shown: number; seeds: boolean; fewer: boolean }) {
  const entries = [
    { look: classes.bold, text: `mean over ${shown === 1 ? "1 seed" : `${shown} seeds`}`, on: true },
    { look: classes.dashed, text: "where only some seeds have a value", on: fewer },
    { look: classes.band, text: "95 % bootstrap interval of the mean", on: shown >= 3 },
    { look: classes.thin, text: "each seed", on: seeds },
  ];
  return (
    <ul className={classes.legend}>
      {entries
        .filter((entry) => entry.on)
        .map((entry) => (
          <li key={entry.text}>
            <span className={entry.look} />
            {entry.text}
          </li>
        ))}
    </ul>
  );
}

function firstEvaluation(experiment: ExperimentDetail): string {
  const { evaluateEvery: every, metric, unit } = reading(experiment.definition);
  return every
    ? `Each run is evaluated when it crosses a multiple of ${every.toLocaleString("en-US")} ${unit}${metric === null ? ", exploration off" : ""}; the curve begins there.`
    : "This definition evaluates at the end of training only.";
}

function round(x: number | undefined): number | undefined {
  return x === undefined ? undefined : Math.round(x);
}
