import { useMemo } from "react";
import type { UsageGroup, UsageReport } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { ShareBar } from "./ShareBar";
import classes from "./Usage.module.css";
import { formatHours, nameGroup } from "./usageData";
import type { UsageKey } from "./usageSearch";

interface UsageTableProps {
  report: UsageReport;
  by: UsageKey;
  name: string;
}

/** The used and the lost device-hours of each group, the largest first. */
export function UsageTable({ report, by, name }: UsageTableProps) {
  const total = report.used_seconds ?? 0;
  const columns = useMemo((): Column<UsageGroup>[] => {
    const part = (group: UsageGroup) => (total > 0 ? group.used_seconds / total : 0);
    return [
      {
        id: "name",
        header: name,
        cell: (group) => <span className={classes.name}>{nameGroup(group, by)}</span>,
        sort: (group) => nameGroup(group, by),
        wrap: true,
      },
      {
        id: "part",
        header: "Part",
        cell: (group) => <ShareBar used={part(group)} label={`Part of ${nameGroup(group, by)}`} />,
        width: "26%",
        hide: "narrow",
      },
      {
        id: "used",
        header: "Used",
        cell: (group) => `${formatHours(group.used_seconds)} h`,
        sort: (group) => group.used_seconds,
        align: "right",
      },
      {
        id: "gpus",
        header: "On GPUs",
        cell: (group) => `${formatHours(group.gpu_seconds)} h`,
        sort: (group) => group.gpu_seconds,
        align: "right",
        hide: "narrow",
      },
      {
        id: "lost",
        header: "Lost",
        cell: (group) =>
          group.lost_seconds > 0 ? (
            <span className={classes.lost}>{formatHours(group.lost_seconds)} h</span>
          ) : (
            <span className="faint">0 h</span>
          ),
        sort: (group) => group.lost_seconds,
        align: "right",
      },
    ];
  }, [by, name, total]);
  return (
    <DataTable
      label="Usage by group"
      rows={report.groups as UsageGroup[]}
      columns={columns}
      rowId={(group) => nameGroup(group, by)}
      footer={
        report.rest && (
          <p className={classes.note}>
            {formatPlural(report.rest_groups, "further group")} used{" "}
            {formatHours(report.rest.used_seconds ?? 0)} h together; the CSV file has them all.
          </p>
        )
      }
    />
  );
}
