import { useQuery } from "@tanstack/react-query";
import { poolSharesQuery } from "@/api/queueQueries";
import type { PoolShares } from "@/api/types";
import { formatDuration, formatPercent } from "@/lib/format";
import { Panel } from "@/ui/Page";
import classes from "./Shares.module.css";

type ProjectShare = PoolShares["projects"][number];
type Part = Pick<
  ProjectShare,
  "entitled" | "used" | "used_seconds" | "decayed" | "decayed_seconds"
>;

/** What each project and person of a pool is entitled to and has used. */
export function SharesPanel({ pool, me }: { pool: string; me: string | undefined }) {
  const { data } = useQuery({ ...poolSharesQuery(pool), refetchInterval: 30_000 });
  if (data === undefined || data.projects.length === 0) return null;
  return (
    <Panel
      title="Shares"
      aside={
        <span className={classes.legend}>
          <span data-kind="entitled">entitled</span>
          <span data-kind="used">used in {formatDays(data.period_seconds)}</span>
          <span data-kind="decayed">what the order compares</span>
        </span>
      }
    >
      <ul className={classes.shares}>
        {data.projects.map((project) => (
          <li key={project.project ?? "others"}>
            <Bar name={project.name ?? "other projects"} part={project} />
            {(project.persons?.length ?? 0) > 0 && (
              <ul className={classes.persons}>
                {project.persons?.map((person) => (
                  <li key={person.user}>
                    <Bar name={person.user === me ? "you" : person.user} part={person} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function formatDays(seconds: number): string {
  const days = Math.round(seconds / 86_400);
  return days === 1 ? "1 day" : `${days} days`;
}

function Bar({ name, part }: { name: string; part: Part }) {
  const { entitled, used, decayed } = part;
  const width = (share: number | null) => `${Math.min(1, share ?? 0) * 100}%`;
  const isOver = (decayed ?? 0) > entitled;
  return (
    <div
      className={classes.bar}
      title={[
        `Entitled to ${formatPercent(entitled)} of the pool`,
        `Used ${formatDuration(part.used_seconds)} of device time, ${formatPercent(used)} of all`,
        `Counted in the order: ${formatDuration(part.decayed_seconds)}, ${formatPercent(decayed)} of all`,
      ].join("\n")}
    >
      <span className={`clip ${classes.name}`}>{name}</span>
      <span className={classes.track} aria-hidden="true">
        <span className={classes.used} style={{ width: width(used) }} />
        <span
          className={classes.decayed}
          data-over={isOver || undefined}
          style={{ width: width(decayed) }}
        />
        <span className={classes.entitled} style={{ left: width(entitled) }} />
      </span>
      <span className={classes.numbers}>
        {formatPercent(decayed ?? 0)} <span className="faint">of {formatPercent(entitled)}</span>
      </span>
    </div>
  );
}
