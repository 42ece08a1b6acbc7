import { Button, SegmentedControl, Select, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { sessionQuery } from "@/api/queries";
import { poolsQuery } from "@/api/queueQueries";
import { usageExport, usageQuery } from "@/api/usageQueries";
import { formatMoment } from "@/lib/format";
import { tidy } from "@/lib/search";
import { EmptyState } from "@/ui/EmptyState";
import { IconDownload } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { MyUsage } from "./MyUsage";
import { OccupancyPanel } from "./OccupancyPanel";
import { SharesPanel } from "./SharesPanel";
import classes from "./Usage.module.css";
import { UsageChart } from "./UsageChart";
import { UsageTable } from "./UsageTable";
import { formatHours } from "./usageData";
import {
  buildUsageParameters,
  PERIODS,
  type PeriodName,
  type UsageKey,
  type UsageSearch,
} from "./usageSearch";

const NAMES: Record<UsageKey, string> = {
  project: "Project",
  user: "Person",
  environment: "Environment",
  experiment: "Experiment",
  pool: "Pool",
};

interface UsagePageProps {
  search: UsageSearch;
  onSearch(search: UsageSearch): void;
}

/** The usage of the pools by group and time, with lost and remaining amounts. */
export function UsagePage({ search, onSearch }: UsagePageProps) {
  const parameters = useMemo(() => buildUsageParameters(search, Date.now()), [search]);
  const query = useQuery(usageQuery(parameters));
  const pools = useQuery(poolsQuery).data ?? [];
  const session = useQuery(sessionQuery).data;
  const by = search.by ?? "project";
  const change = (part: { [Key in keyof UsageSearch]?: UsageSearch[Key] | undefined }) =>
    onSearch(tidy({ ...search, ...part }) as UsageSearch);
  const report = query.data;
  const pool = search.pool ?? pools[0]?.name ?? null;
  return (
    <Page
      title="Usage"
      facts={
        report && (
          <>
            <span>
              <b>{formatHours(report.used_seconds ?? 0)}</b> device-hours used
            </span>
            <span>
              <b>{formatHours(report.lost_seconds ?? 0)}</b> lost
            </span>
            <span className="faint">since {formatMoment(report.since).slice(0, 16)}</span>
          </>
        )
      }
      actions={
        <Button
          component="a"
          href={usageExport(parameters)}
          download
          variant="default"
          leftSection={<IconDownload size={14} />}
        >
          Download CSV
        </Button>
      }
    >
      <div className={classes.filters}>
        <SegmentedControl
          aria-label="Period"
          value={search.period ?? "week"}
          data={Object.entries(PERIODS).map(([value, { label }]) => ({ value, label }))}
          onChange={(value) => change({ period: value as PeriodName })}
        />
        <Select
          aria-label="Grouped by"
          value={by}
          data={Object.entries(NAMES).map(([value, label]) => ({
            value,
            label: `By ${label.toLowerCase()}`,
          }))}
          onChange={(value) => change({ by: (value ?? undefined) as UsageKey | undefined })}
          allowDeselect={false}
          w={150}
        />
        <Select
          aria-label="Pool"
          placeholder="All pools"
          value={search.pool ?? null}
          data={pools.map(({ name }) => name)}
          onChange={(value) => change({ pool: value ?? undefined })}
          clearable
          w={150}
        />
        <Switch
          label="Only mine"
          checked={search.user === "me"}
          onChange={(event) => change({ user: event.currentTarget.checked ? "me" : undefined })}
        />
      </div>
      <Panel title="Device-hours" flush>
        <ListFrame query={query}>
          {report && report.groups.length === 0 ? (
            <EmptyState title="Nothing was used in this period">
              GPU-hours of jobs with GPUs and slot-hours of jobs without are counted from the start
              of each attempt. Choose a longer period, or remove a filter.
            </EmptyState>
          ) : (
            report && (
              <>
                <div className={classes.chart}>
                  <UsageChart report={report} by={by} />
                </div>
                <UsageTable report={report} by={by} name={NAMES[by]} />
              </>
            )
          )}
        </ListFrame>
      </Panel>
      <OccupancyPanel query={query} />
      <div className={classes.pair}>
        <SharesPanel pool={pool} several={pools.length > 1 && search.pool === undefined} />
        <MyUsage pool={pool} user={session?.user ?? null} period={search.period ?? "week"} />
      </div>
    </Page>
  );
}
