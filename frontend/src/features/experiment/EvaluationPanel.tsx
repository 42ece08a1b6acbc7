import { SegmentedControl, Skeleton, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Suspense, useMemo } from "react";
import type { ApiError } from "@/api/client";
import { listMeasures, type Measures } from "@/api/definition";
import { seriesQuery } from "@/api/queries";
import type { ExperimentDetail, Run } from "@/api/types";
import { Plot } from "@/charts";
import { AXIS_LABELS } from "@/lib/axes";
import { chooseXFormat, formatPlural, formatValue } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { ResetZoom } from "@/ui/CurveControls";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import classes from "./ExperimentPage.module.css";
import { buildEvaluationPlot, buildEvaluationRequest } from "./evaluationPlot";
import { AXES, type ChangeSearch, type ExperimentSearch } from "./search";

const HEIGHT = 320;

interface EvaluationPanelProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
  search: ExperimentSearch;
  change: ChangeSearch;
}

/**
 * The learning curve: evaluation return, or metric, of every seed, their mean, and its 95 %
 * interval.
 */
export function EvaluationPanel({ experiment, runs, search, change }: EvaluationPanelProps) {
  const scheme = useScheme();
  const { counter, score } = listMeasures(experiment.definition);
  const axis = search.x ?? counter;
  const evaluated = useMemo(() => runs.filter((run) => run.latest_evaluation !== null), [runs]);
  const shown = useMemo(
    () => evaluated.filter((run) => !search.hide?.includes(run.seed)),
    [evaluated, search.hide],
  );
  const carry = search.carry ?? false;
  const request = useMemo(
    () =>
      buildEvaluationRequest(experiment, shown, axis, carry, {
        start: search.start,
        end: search.end,
      }),
    [experiment, shown, axis, carry, search.start, search.end],
  );
  const query = useQuery({ ...seriesQuery(request), enabled: shown.length > 0 });
  const problem = findQueryError(query);
  const seeds = search.seeds !== "hide";
  const plot = useMemo(
    () => (query.data ? buildEvaluationPlot(query.data, experiment.id, runs, scheme, seeds) : null),
    [query.data, experiment.id, runs, scheme, seeds],
  );
  return (
    <Panel
      title={`Evaluation ${score}`}
      aside={
        <>
          <ResetZoom range={search} onReset={change} />
          {(carry || hasEarlyEnd(shown, counter)) && (
            <Switch
              label="Carry forward"
              title="Seeds that have succeeded stay in the mean with their last value"
              checked={carry}
              onChange={(e) => change({ carry: e.currentTarget.checked || undefined })}
            />
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
              change({
                x: x === counter ? undefined : (x as typeof axis),
                start: undefined,
                end: undefined,
              })
            }
          />
        </>
      }
    >
      {problem !== null && !plot ? (
        <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
      ) : evaluated.length === 0 ? (
        <EmptyState small title="No evaluation yet">
          {firstEvaluation(experiment)}
        </EmptyState>
      ) : plot === null ? (
        <Skeleton height={HEIGHT} />
      ) : (
        <Suspense fallback={<Skeleton height={HEIGHT} />}>
          <Plot
            {...plot}
            label={`Mean evaluation ${score} of ${shown.length} ${shown.length === 1 ? "seed" : "seeds"} over ${AXIS_LABELS[axis]}`}
            testId="evaluation-chart"
            height={HEIGHT}
            scheme={scheme}
            xFormat={chooseXFormat(axis)}
            yFormat={(y) => formatValue(y, 4)}
            onZoom={(range) => change({ start: round(range?.start), end: round(range?.end) })}
            range={{ start: search.start, end: search.end }}
          />
          <Legend
            n={plot.n}
            seeds={seeds}
            carry={carry}
            fewer={plot.series.some((one) => one.dash)}
          />
        </Suspense>
      )}
    </Panel>
  );
}

/** Whether a run has succeeded before another one's latest evaluation. */
function hasEarlyEnd(runs: readonly Run[], counter: Measures["counter"]): boolean {
  const last = Math.max(...runs.map((run) => run.latest_evaluation?.[counter] ?? 0));
  return runs.some(
    (run) => run.state === "succeeded" && (run.latest_evaluation?.[counter] ?? last) < last,
  );
}

interface LegendProps {
  n: { least: number; most: number };
  seeds: boolean;
  carry: boolean;
  fewer: boolean;
}

function Legend({ n, seeds, carry, fewer }: LegendProps) {
  const over =
    n.least === n.most
      ? formatPlural(n.most, "seed")
      : `${n.least} to ${formatPlural(n.most, "seed")}`;
  const entries = [
    {
      look: classes.bold,
      text: `mean over ${over}${carry ? ", succeeded ones carried forward" : ""}`,
      on: true,
    },
    { look: classes.dashed, text: "where only some seeds have a value", on: fewer },
    { look: classes.mark, text: "n, the number of seeds, changes", on: n.least !== n.most },
    {
      look: classes.band,
      text: "95 % bootstrap interval of the mean, from 3 seeds on",
      on: n.most >= 3,
    },
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
  const { evaluateEvery: every, metric, unit } = listMeasures(experiment.definition);
  if (!every) return "This definition evaluates at the end of training only.";
  const multiple = `${every.toLocaleString("en-US")} ${unit}`;
  const mode = metric === null ? ", exploration off" : "";
  return (
    `Each run is evaluated when it crosses a multiple of ${multiple}${mode}; ` +
    "the curve begins with the first evaluation."
  );
}

function round(x: number | undefined): number | undefined {
  return x === undefined ? undefined : Math.round(x);
}
