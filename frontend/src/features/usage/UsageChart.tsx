import { useMemo } from "react";
import type { UsageReport } from "@/api/types";
import { StackedBars } from "@/charts/StackedBars";
import { chooseCycleColor } from "@/lib/color";
import { useScheme } from "@/ui/scheme";
import { buildUsageBars } from "./usageData";
import type { UsageKey } from "./usageSearch";

/** Device-hours over time, stacked by group. */
export function UsageChart({ report, by }: { report: UsageReport; by: UsageKey }) {
  const scheme = useScheme();
  const { bars, parts } = useMemo(
    () => buildUsageBars(report, by, (_, index) => chooseCycleColor(index, scheme)),
    [report, by, scheme],
  );
  return (
    <StackedBars
      label={`Device-hours by ${by} over time`}
      bars={bars}
      parts={parts}
      unit="h"
      testId="usage-chart"
    />
  );
}
