import { useMemo } from "react";
import { STATISTICS_PATH } from "@/api/statisticsQueries";
import type { StatisticsQuery, StatisticsResult } from "@/api/types";
import { IntervalFigure } from "@/charts/IntervalFigure";
import { LineFigure } from "@/charts/LineFigure";
import { chooseCycleColor } from "@/lib/color";
import { nameExperiments } from "@/lib/experimentNames";
import { formatCompact } from "@/lib/format";
import { Figure } from "@/ui/Figure";
import { useScheme } from "@/ui/scheme";
import classes from "./Benchmarks.module.css";
import { describeInterval, describeScore, type FigureProps, type Group } from "./captions";
import { Improvement } from "./Improvement";
import {
  AGGREGATES,
  aggregateTable,
  efficiencyTable,
  printAggregates,
  profileTable,
} from "./tables";

const HUES = 8;
const DASHES = [undefined, "6 3", "2 3", "8 3 2 3"];

interface FiguresProps {
  query: StatisticsQuery;
  result: StatisticsResult;
  /** Short names of experiments by ID. */
  names: ReadonlyMap<string, string>;
}

/** The statistics over environments and seeds, each with its own files. */
export function Figures({ query, result, names }: FiguresProps) {
  const scheme = useScheme();
  const groups = useMemo(
    () =>
      result.groups.map(
        ({ name }, index): Group => ({
          name: nameExperiments(name, names),
          color: chooseCycleColor(index, scheme),
          dash: DASHES[Math.floor(index / HUES) % DASHES.length],
        }),
      ),
    [result.groups, names, scheme],
  );
  const common = { result, groups, names, request: { path: STATISTICS_PATH, body: query } };
  return (
    <>
      <Aggregates {...common} />
      <div className={classes.pair}>
        <Profiles {...common} />
        <Efficiency {...common} />
      </div>
      <Improvement {...common} />
    </>
  );
}

const OF_EXTREMES =
  "0 and 1 are the lowest and the highest final score of these runs in each environment: " +
  "evaluations before the end are often below 0, and one above 1 was better than every final score.";

function scoreLabel({ method }: StatisticsResult): string {
  return method.normalisation === null ? "score" : "normalised score";
}

function Aggregates({ result, groups, names, request }: FigureProps) {
  const data = useMemo(() => aggregateTable(result), [result]);
  const panels = AGGREGATES.filter(([name]) =>
    result.groups.some((group) => group.aggregates[name] !== undefined),
  ).map(([name, heading]) => ({
    heading,
    intervals: result.groups.map((group) => group.aggregates[name] ?? null),
    // Fewer than three seeds have no interval: their scores are shown instead.
    points: result.groups.map((group) =>
      name === "iqm" && group.aggregates.iqm?.low === null
        ? group.scores.map((one) => one.score)
        : [],
    ),
  }));
  const advice = result.groups.flatMap((group) =>
    group.advice !== null && groups.length > 1 ? [`${group.name}: ${group.advice.sentence}`] : [],
  );
  return (
    <Figure
      title="Aggregate scores"
      name="aggregates"
      data={data}
      printed={printAggregates(result, names)}
      query={request}
      caption={[
        `${describeScore(result)} ${describeInterval(result)}`,
        ...[...result.notes, ...advice].map((sentence) => nameExperiments(sentence, names)),
      ]}
    >
      <IntervalFigure
        label="Mean, median, interquartile mean and optimality gap of each group"
        rows={groups}
        panels={panels}
      />
    </Figure>
  );
}

function Profiles({ result, groups, request }: FigureProps) {
  const data = useMemo(() => profileTable(result), [result]);
  return (
    <Figure
      title="Performance profiles"
      name="profiles"
      data={data}
      query={request}
      caption={[
        "Share of all runs with a score above each threshold; bands are pointwise. " +
          describeInterval(result),
      ]}
    >
      <LineFigure
        label="Share of runs above each score"
        x={result.thresholds}
        xLabel={`${scoreLabel(result)} τ`}
        yLabel="share of runs > τ"
        range={[0, 1]}
        lines={groups.map((group, i) => ({
          name: group.name,
          color: group.color,
          ...(group.dash && { dash: group.dash }),
          y: result.groups[i]?.profile?.share ?? [],
          low: result.groups[i]?.profile?.low ?? null,
          high: result.groups[i]?.profile?.high ?? null,
        }))}
      />
    </Figure>
  );
}

function Efficiency({ result, groups, request }: FigureProps) {
  const data = useMemo(() => efficiencyTable(result), [result]);
  const falls = result.groups.filter((group) => new Set(group.efficiency?.n ?? []).size > 1);
  return (
    <Figure
      title="Sample efficiency"
      name="sample-efficiency"
      data={data}
      query={request}
      caption={[
        "IQM over env steps; each run counts from its first to its last evaluation, nothing is " +
          `extrapolated. ${describeInterval(result, result.method.curve_resamples)}`,
        ...(falls.length > 0
          ? [
              "The number of runs that a curve is over (n in the CSV) changes along it: " +
                `${falls.map((group) => group.name).join(", ")}.`,
            ]
          : []),
        ...(request.body.normalisation?.kind === "min_max" ? [OF_EXTREMES] : []),
      ]}
    >
      <LineFigure
        label="Interquartile mean over env steps"
        x={result.grid}
        xLabel="env steps"
        xFormat={formatCompact}
        yLabel={`IQM of the ${scoreLabel(result)}`}
        lines={groups.map((group, i) => ({
          name: group.name,
          color: group.color,
          ...(group.dash && { dash: group.dash }),
          y: result.groups[i]?.efficiency?.iqm ?? [],
          low: result.groups[i]?.efficiency?.low ?? null,
          high: result.groups[i]?.efficiency?.high ?? null,
        }))}
      />
    </Figure>
  );
}
