import { useMemo } from "react";
import type { PoolOccupancy, UsageReport } from "@/api/types";
import { StackedBars } from "@/charts/StackedBars";
import { formatPercent } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame, type LoadedQuery } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import classes from "./Usage.module.css";
import { buildOccupancyBars, formatHours, OCCUPANCY } from "./usageData";

const columns: Column<PoolOccupancy>[] = [
  { id: "pool", header: "Pool", cell: (one) => one.pool, sort: (one) => one.pool },
  {
    id: "recorded",
    header: "Recorded",
    cell: (one) => `${formatHours(one.recorded_seconds)} h`,
    sort: (one) => one.recorded_seconds,
    align: "right",
    hide: "narrow",
  },
  {
    id: "slots",
    header: "Slot-hours",
    cell: (one) => known(one, one.slot_seconds),
    sort: (one) => one.slot_seconds,
    align: "right",
    hide: "narrow",
  },
  {
    id: "busy",
    header: "Busy",
    cell: (one) =>
      one.slot_seconds > 0 ? formatPercent(one.busy_seconds / one.slot_seconds) : unknown(one),
    sort: (one) => one.busy_seconds,
    align: "right",
  },
  {
    id: "waiting",
    header: "Idle, jobs waited",
    cell: (one) => (
      <span className={one.idle_waiting_seconds > 0 ? classes.waste : ""}>
        {known(one, one.idle_waiting_seconds)}
      </span>
    ),
    sort: (one) => one.idle_waiting_seconds,
    align: "right",
  },
];

function known(pool: PoolOccupancy, seconds: number): string {
  return pool.recorded_seconds > 0 ? `${formatHours(seconds)} h` : "unknown";
}

function unknown(pool: PoolOccupancy): string {
  return pool.recorded_seconds > 0 ? "–" : "unknown";
}

/** The occupancy of the pools' slots, with the slots that were idle beside waiting jobs. */
export function OccupancyPanel({
  query,
}: {
  query: LoadedQuery & { data: UsageReport | undefined };
}) {
  const report = query.data;
  const bars = useMemo(() => (report ? buildOccupancyBars(report, report.pools) : []), [report]);
  const recorded = report?.pools.some((pool) => pool.recorded_seconds > 0) ?? false;
  return (
    <Panel title="Slots" flush aside={<span className="faint">of all projects</span>}>
      <ListFrame query={query}>
        {recorded && report ? (
          <>
            <div className={classes.chart}>
              <StackedBars
                label="Slot-hours over time: busy, idle beside waiting jobs, idle"
                bars={bars}
                parts={OCCUPANCY}
                unit="h"
                height={170}
                testId="occupancy-chart"
              />
            </div>
            <DataTable
              label="Slots by pool"
              rows={report.pools}
              columns={columns}
              rowId={(one) => one.pool}
            />
          </>
        ) : (
          <EmptyState title="Nothing was recorded in this period">
            The server records every ten seconds how many slots are busy, and how many are idle
            although a waiting job fits them. Of the time before, and while it was down, nothing is
            known.
          </EmptyState>
        )}
      </ListFrame>
    </Panel>
  );
}
