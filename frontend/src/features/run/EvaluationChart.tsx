import { Skeleton } from "@mantine/core";
import { Suspense, useMemo } from "react";
import type { Evaluation, EvaluationSource } from "@/api/types";
import { Plot, type PlotSource } from "@/charts";
import { alpha } from "@/lib/color";
import { chooseXFormat, formatPlural, formatValue, toNumber } from "@/lib/format";
import type { View } from "@/live/curve";
import { useScheme } from "@/ui/scheme";
import classes from "./CurvesTab.module.css";
import { pointOf, RETURN } from "./evaluationCurves";
import { mergeEvaluations } from "./mergeEvaluations";
import { EVALUATION_SERIES } from "./seriesGroups";

interface EvaluationChartProps {
  evaluations: readonly Evaluation[];
  /** The source whose evaluations are drawn. */
  of: EvaluationSource;
  /** Whether the definition scores actions that are drawn from the policy. */
  scoresDrawn: boolean;
  /** The return, or the name of a metric. */
  curve: string;
  color: string;
  view: View;
  onZoom(range: { start: number; end: number } | null): void;
  /** Opens the evaluation whose point was clicked. */
  onOpen(id: string): void;
}

const EDGES = ["max", "min"] as const;
const TITLES: Record<EvaluationSource, string> = {
  evaluation: "return",
  train_data: "return on the training's own episodes",
  test: "return of tests",
  stochastic: "return of drawn actions",
  greedy: "return of greedy actions",
};

/** Mean return of each evaluation of one source with the range of its episodes, or a metric. */
export function EvaluationChart({
  evaluations,
  of,
  scoresDrawn,
  curve,
  color,
  view,
  onZoom,
  onOpen,
}: EvaluationChartProps) {
  const scheme = useScheme();
  const ranged = curve === RETURN;
  const height = ranged ? 220 : 172;
  const titled = scoresDrawn && of === "evaluation" ? "stochastic" : of;
  const title = ranged ? TITLES[titled] : curve;
  const shown = useMemo(
    () =>
      mergeEvaluations(
        evaluations.filter((one) => one.source === of && (view.superseded || !one.superseded)),
      ),
    [evaluations, of, view.superseded],
  );
  const ordered = useMemo(() => orderOnAxis(shown, view), [shown, view]);
  const source = useMemo<PlotSource>(() => {
    const column = (pick: (one: Evaluation) => number | string) =>
      ordered.map(({ one }) => finite(pick(one)));
    const data: [number[], ...(number | null)[][]] = [
      ordered.map(({ x }) => x),
      ...(ranged ? [column((one) => one.max), column((one) => one.min)] : []),
      column((one) => pointOf(one, curve)),
    ];
    return { read: () => ({ data, points: ordered.length }), watch: () => () => undefined };
  }, [ordered, curve, ranged]);
  const last = shown.filter((one) => !one.superseded).at(-1);
  return (
    <figure className={ranged ? `${classes.panel} ${classes.wide}` : classes.panel}>
      <figcaption>
        <span>{title}</span>
        <span className="faint">
          {ranged ? "mean, with smallest and largest episode" : "mean over examples"}
        </span>
        <span
          className={classes.last}
          title={last && ranged ? `mean over ${formatPlural(last.episodes, "episode")}` : undefined}
        >
          {formatValue(last && pointOf(last, curve))}
        </span>
      </figcaption>
      <Suspense fallback={<Skeleton height={height} />}>
        <Plot
          label={ranged ? `Mean evaluation ${title}` : `Evaluation ${title}`}
          testId={`curve-${EVALUATION_SERIES[of]}/${curve}`}
          height={height}
          source={source}
          series={[
            ...(ranged ? EDGES.map((label) => ({ label, color, edge: true })) : []),
            { label: ranged ? "mean return" : curve, color, width: 2, dots: shown.length <= 60 },
          ]}
          bands={ranged ? [{ high: 0, low: 1, fill: alpha(color, 0.16) }] : []}
          scheme={scheme}
          xFormat={chooseXFormat(view.axis)}
          onZoom={onZoom}
          onPick={(index) => {
            const picked = ordered[index];
            if (picked !== undefined) onOpen(picked.one.id);
          }}
          range={{ start: view.start, end: view.end }}
        />
      </Suspense>
    </figure>
  );
}

/** Evaluations with their place on the axis, ascending. */
function orderOnAxis(evaluations: readonly Evaluation[], { axis, origin = 0 }: View) {
  return evaluations
    .map((one) => ({ one, x: axis === "relative" ? one.wall - origin : one[axis] }))
    .sort((a, b) => a.x - b.x);
}

function finite(x: number | string): number | null {
  const number = toNumber(x);
  return Number.isFinite(number) ? number : null;
}
