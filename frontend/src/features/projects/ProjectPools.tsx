import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usePermission } from "@/api/access";
import { poolsQuery } from "@/api/queueQueries";
import type { Project } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./Projects.module.css";

/** The pools that admit a project; administrators change them on the pools' pages. */
export function ProjectPools({ project }: { project: Project }) {
  const { data } = useQuery(poolsQuery);
  const manager = usePermission("server.pools");
  if (data === undefined) return null;
  const pools = data.filter((pool) => pool.projects.some((one) => one.project === project.slug));
  return (
    <Panel
      title="Pools"
      aside={manager.allowed && <Link to="/admin/pools">All pools</Link>}
      flush={pools.length > 0}
    >
      {pools.length === 0 ? (
        <p className="muted">
          No pool admits the project, so its jobs run nowhere.{" "}
          {manager.allowed
            ? "Admit it on the page of a pool."
            : "Ask an administrator of the server to admit it to a pool."}
        </p>
      ) : (
        pools.map((pool) => (
          <div key={pool.name} className={classes.pool}>
            <strong>
              {manager.allowed ? (
                <Link to="/admin/pools/$pool" params={{ pool: pool.name }}>
                  {pool.name}
                </Link>
              ) : (
                pool.name
              )}
            </strong>
            {pool.paused_at && (
              <span title={pool.pause_reason}>
                <StateBadge state="paused" />
              </span>
            )}
            <span className="muted">
              {pool.free_slots} of {formatPlural(pool.slots, "slot")} free
            </span>
          </div>
        ))
      )}
    </Panel>
  );
}
