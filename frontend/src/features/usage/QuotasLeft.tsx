import { useQuery } from "@tanstack/react-query";
import type { OwnQuotas } from "@/api/types";
import { ownQuotasQuery } from "@/api/usageQueries";
import { formatCount } from "@/lib/format";
import { Meter } from "@/ui/Meter";
import classes from "./Usage.module.css";

type State = OwnQuotas["items"][number]["of_person"];

const LIMITS = [
  ["queued", "waiting jobs"],
  ["running", "running jobs"],
  ["device_hours", "device-hours in 7 days"],
] as const;

/** What is left of the quotas that limit the caller; nothing where there is none. */
export function QuotasLeft({ pool }: { pool: string | null }) {
  const found = useQuery(ownQuotasQuery).data?.items ?? [];
  const lines = found
    .filter((one) => pool === null || one.pool === pool)
    .flatMap((one) => [
      ...listLimits(`Yours in ${one.project}`, one.of_person, one.pool),
      ...listLimits(`All of ${one.project}`, one.of_project, one.pool),
    ]);
  if (lines.length === 0) return null;
  return (
    <section className={classes.quotas} aria-label="Left of the quotas">
      <h3>Left of the quotas</h3>
      <ul>
        {lines.map(({ whose, what, limit, left, place }) => (
          <li key={`${place} ${whose} ${what}`}>
            <span>
              {whose}
              {pool === null && <span className="faint"> in {place}</span>}
            </span>
            <Meter
              used={limit - left}
              limit={limit}
              label={`${whose}: ${what}`}
              text={`${formatAmount(left)} of ${formatAmount(limit)} left`}
            />
            <span>
              <b>{formatAmount(left)}</b> of {formatAmount(limit)}{" "}
              <span className="faint">{what}</span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function listLimits(whose: string, { limits, left }: State, place: string) {
  return LIMITS.flatMap(([name, what]) => {
    const [limit, rest] = [limits[name], left[name]];
    return limit === null || rest === null ? [] : [{ whose, what, limit, left: rest, place }];
  });
}

function formatAmount(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : value.toFixed(1);
}
