import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { sharesQuery, usageQuery } from "@/api/usageQueries";
import { formatPercent } from "@/lib/format";
import { Facts } from "@/ui/Facts";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { QuotasLeft } from "./QuotasLeft";
import { formatHours } from "./usageData";
import { buildUsageParameters, PERIODS, type PeriodName } from "./usageSearch";

interface MyUsageProps {
  pool: string | null;
  user: string | null;
  period: PeriodName;
}

/** The caller's usage, and the remaining part of the caller's share of the pool. */
export function MyUsage({ pool, user, period }: MyUsageProps) {
  const parameters = useMemo(
    () =>
      buildUsageParameters(
        pool === null ? { period, user: "me" } : { period, user: "me", pool },
        Date.now(),
      ),
    [period, pool],
  );
  const query = useQuery(usageQuery(parameters));
  const shares = useQuery(sharesQuery(pool)).data;
  const mine = (shares?.projects ?? []).flatMap((project) =>
    (project.persons ?? [])
      .filter((person) => person.user === user && person.entitled > 0)
      .map((person) => ({ project: project.project ?? "", person })),
  );
  return (
    <Panel title="Mine" aside={<span className="faint">{PERIODS[period].label}</span>}>
      <ListFrame query={query} lines={2}>
        {query.data && (
          <Facts
            items={[
              ["Used", `${formatHours(query.data.used_seconds ?? 0)} device-hours`],
              ["Of these on GPUs", `${formatHours(query.data.gpu_seconds ?? 0)} h`],
              ["Lost by failures", `${formatHours(query.data.lost_seconds ?? 0)} h, not charged`],
              ...mine.flatMap(({ project, person }): [string, string][] => [
                [`Entitled in ${project}`, `${formatPercent(person.entitled)} of the pool`],
                [`Counted now in ${project}`, describe(person.decayed, person.entitled)],
              ]),
            ]}
          />
        )}
      </ListFrame>
      <QuotasLeft pool={pool} />
    </Panel>
  );
}

function describe(decayed: number | null, entitled: number): string {
  if (decayed === null) return "nothing: your jobs come first";
  const place = decayed > entitled ? "above your part" : "within your part";
  return `${formatPercent(decayed)}, ${place}`;
}
