import { useQuery } from "@tanstack/react-query";
import type { PoolShares } from "@/api/types";
import { sharesQuery } from "@/api/usageQueries";
import { formatPercent } from "@/lib/format";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { ShareBar } from "./ShareBar";
import classes from "./Usage.module.css";
import { formatHours } from "./usageData";

interface SharesPanelProps {
  pool: string | null;
  /** Whether other pools could be chosen. */
  several: boolean;
}

/** The shares of projects and persons in a pool, beside their usage. */
export function SharesPanel({ pool, several }: SharesPanelProps) {
  const query = useQuery(sharesQuery(pool));
  return (
    <Panel
      flush
      title={pool === null ? "Shares" : `Shares of the pool ${pool}`}
      aside={several && <span className="faint">choose a pool above for another one</span>}
    >
      {pool === null ? (
        <EmptyState title="No pool admits your projects">
          Ask an administrator of the server to admit a project to a pool.
        </EmptyState>
      ) : (
        <ListFrame query={query}>{query.data && <Shares shares={query.data} />}</ListFrame>
      )}
    </Panel>
  );
}

function Shares({ shares }: { shares: PoolShares }) {
  if (shares.projects.length === 0) return <EmptyState title="This pool admits no project" />;
  return (
    <>
      <table className={classes.shares} aria-label="Shares of the pool">
        <thead>
          <tr>
            <th>Project, person</th>
            <th className={classes.number}>Entitled</th>
            <th>Used in 7 days</th>
            <th>Counted now</th>
          </tr>
        </thead>
        {shares.projects.map((project) => (
          <tbody key={project.project ?? ""}>
            <tr className={classes.project}>
              <th scope="row">{project.project ?? "other projects"}</th>
              <Bars label={project.project ?? "other projects"} share={project} />
            </tr>
            {(project.persons ?? []).map((person) => (
              <tr key={person.user}>
                <td className={classes.person}>{person.user}</td>
                <Bars label={person.user} share={person} />
              </tr>
            ))}
          </tbody>
        ))}
      </table>
      <p className={classes.note}>
        The mark on a bar is the entitled part. The next free slot goes to the project, and in it to
        the person, whose usage counted now is lowest for its share; a device-hour of a week ago
        counts half.
      </p>
    </>
  );
}

interface Share {
  entitled: number;
  used_seconds: number;
  used: number | null;
  decayed: number | null;
}

function Bars({ label, share }: { label: string; share: Share }) {
  return (
    <>
      <td className={classes.number}>{formatPercent(share.entitled)}</td>
      <td title={`${formatHours(share.used_seconds)} device-hours`}>
        <ShareBar used={share.used} entitled={share.entitled} label={`${label}, used`} />
      </td>
      <td>
        <ShareBar used={share.decayed} entitled={share.entitled} label={`${label}, counted now`} />
      </td>
    </>
  );
}
