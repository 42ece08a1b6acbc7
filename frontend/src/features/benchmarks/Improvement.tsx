import { useMemo } from "react";
import { IntervalFigure } from "@/charts/IntervalFigure";
import { nameExperiments } from "@/lib/experimentNames";
import { EmptyState } from "@/ui/EmptyState";
import { Figure } from "@/ui/Figure";
import { Panel } from "@/ui/Page";
import { describeInterval, type FigureProps } from "./captions";
import { MOST_COMPARED } from "./search";
import { improvementTable } from "./tables";

/** How likely a run of one group scores higher than one of another. */
export function Improvement({ result, groups, names, request }: FigureProps) {
  const data = useMemo(() => improvementTable(result), [result]);
  if (groups.length > MOST_COMPARED)
    return (
      <Panel title="Probability of improvement">
        <EmptyState small title={`There are ${groups.length} groups`}>
          Pairs of at most {MOST_COMPARED} are compared: narrow the filter, or group by fewer
          fields.
        </EmptyState>
      </Panel>
    );
  if (result.pairs.length === 0)
    return (
      <Panel title="Probability of improvement">
        <EmptyState small title="There are no two groups to compare">
          {groups.length < 2
            ? "All runs are one group: group them by a field that differs."
            : "No two groups have an environment in common."}
        </EmptyState>
      </Panel>
    );
  const colors = new Map(result.groups.map(({ name }, i) => [name, groups[i]?.color]));
  return (
    <Figure
      title="Probability of improvement"
      name="probability-of-improvement"
      data={data}
      query={request}
      caption={[
        "How likely a run of the first group scores higher than one of the second: the mean over " +
          `the environments that both have of P(X > Y) + P(X = Y) / 2. ${describeInterval(result)}`,
      ]}
    >
      <IntervalFigure
        label="Probability that the first group of each pair scores higher"
        rows={result.pairs.map((pair) => ({
          name: nameExperiments(`${pair.first} > ${pair.second}`, names),
          color: colors.get(pair.first) ?? "currentColor",
        }))}
        panels={[
          {
            heading: "P(first > second)",
            intervals: result.pairs.map((pair) => pair.improvement),
            mark: 0.5,
            range: [0, 1],
          },
        ]}
      />
    </Figure>
  );
}
