import { Skeleton } from "@mantine/core";
import { Suspense, useMemo } from "react";
import type { Evaluation, EvaluationSource } from "@/api/types";
import { Plot, type PlotSource } from "@/charts";
import { alpha } from "@/lib/color";
import { clock, compact, toNumber, value } from "@/lib/format";
import type { View } from "@/live/curves";
import { useScheme } from "@/ui/scheme";
import classes from "./CurvesTab.module.css";
import { EVALUATION_SERIES } from "./sections";

interface EvaluationChartProps {
  evaluations: readonly Evaluation[];
  /** Which of them. */
  of: EvaluationSource;
  color: string;
  view: View;
  onZoom(range: { start: number; end: number } | null): void;
}

const TITLES: Record<EvaluationSource, string> = {
  evaluation: "return",
  train_data: "return on the training's own episodes",
  test: "return of tests",
};

/** Mean return of each evaluation of one source, with the range of its episodes. */
export function EvaluationChart({ evaluations, of, color, view, onZoom }: EvaluationChartProps) {
  const scheme = useScheme();
  const shown = useMemo(
    () => evaluations.filter((one) => one.source === of && (view.superseded || !one.superseded)),
    [evaluations, of, view.superseded],
  );
  const source = useMemo<PlotSource>(() => {
    const ordered = [...shown].sort((a, b) => a[view.axis] - b[view.axis]);
    const column = (pick: (one: Evaluation) => number | string) => ordered.map((one) => finite(pick(one)));
    const data: [number[], ...(number | null)[][]] = [
      ordered.map((one) => one[view.axis]),
      column((one) => one.max),
      column((one) => one.min),
      column((one) => one.mean),
    ];
    return { read: () => ({ data, points: ordered.length }), watch: () => () => undefined };
  }, [shown, view.axis]);
  return (
    <figure className={`${classes.panel} ${classes.wide}`}>
      <figcaption>
        <span>{TITLES[of]}</span>
        <span className="faint">mean, with smallest and largest episode</span>
        <span className={classes.last}>{value(shown.filter((one) => !one.superseded).at(-1)?.mean)}</span>
      </figcaption>
      <Suspense fallback={<Skeleton height={220} />}>
        <Plot
          label={`Mean evaluation ${TITLES[of]}`}
          testId={`curve-${EVALUATION_SERIES[of]}/mean`}
          height={220}
          source={source}
          series={[
            { label: "max", color, edge: true },
            { label: "min", color, edge: true },
            { label: "mean return", color, width: 2, dots: shown.length <= 60 },
          ]}
          bands={[{ high: 0, low: 1, fill: alpha(color, 0.16) }]}
          scheme={scheme}
          xFormat={view.axis === "wall" ? clock : compact}
          onZoom={onZoom}
          range={{ start: view.start, end: view.end }}
        />
      </Suspense>
    </figure>
  );
}

function finite(x: number | string): number | null {
  const number = toNumber(x);
  return Number.isFinite(number) ? number : null;
}
