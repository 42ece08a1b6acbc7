import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { poolsQuery } from "@/api/queueQueries";
import type { Pool } from "@/api/types";
import { formatCount } from "@/lib/format";
import { SILENCE_MS, useLiveQueue } from "@/live/useLiveQueue";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Meter } from "@/ui/Meter";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { StateBadge } from "@/ui/StateBadge";
import { CreatePool } from "./CreatePool";
import classes from "./Pools.module.css";
import { describeWallTimes } from "./pool";

/** The pools of the server, for its administrators. */
export function PoolsPage() {
  const query = useQuery({ ...poolsQuery, refetchInterval: SILENCE_MS });
  useLiveQueue("pools");
  const right = usePermission("server.pools");
  const [creating, setCreating] = useState(false);
  const pools = query.data ?? [];
  return (
    <Page
      title="Pools"
      facts={
        <span>A pool is a group of workers with one queue for the projects that it admits</span>
      }
      actions={
        <Permitted reason={right.reason}>
          <Button leftSection={<IconPlus size={14} />} onClick={() => setCreating(true)}>
            New pool
          </Button>
        </Permitted>
      }
    >
      <Panel flush>
        <ListFrame query={query}>
          {pools.length === 0 ? (
            <EmptyState title="No pool yet">
              Create a pool, make an enrolment token in it, and start a worker with that token on
              each machine that shall train. Jobs of the projects that the pool admits then run
              there.
            </EmptyState>
          ) : (
            <List pools={pools} />
          )}
        </ListFrame>
      </Panel>
      {creating && <CreatePool onClose={() => setCreating(false)} />}
    </Page>
  );
}

function List({ pools }: { pools: readonly Pool[] }) {
  const navigate = useNavigate();
  return (
    <DataTable
      label="Pools"
      rows={pools}
      columns={COLUMNS}
      rowId={(pool) => pool.name}
      onOpen={({ name }) => void navigate({ to: "/admin/pools/$pool", params: { pool: name } })}
    />
  );
}

const COLUMNS: Column<Pool>[] = [
  {
    id: "name",
    header: "Pool",
    sort: ({ name }) => name,
    cell: (pool) => (
      <span className={classes.name} title={pool.description || pool.name}>
        <Link to="/admin/pools/$pool" params={{ pool: pool.name }}>
          {pool.name}
        </Link>
        {pool.paused_at && (
          <span title={pool.pause_reason}>
            <StateBadge state="paused" bare />
          </span>
        )}
      </span>
    ),
  },
  {
    id: "slots",
    header: "Slots in use",
    width: 124,
    sort: ({ slots }) => slots,
    cell: (pool) => {
      const busy = pool.slots - pool.free_slots;
      const text = `${busy} of ${pool.slots}`;
      return (
        <span className={classes.use}>
          <span>{text}</span>
          <Meter used={busy} limit={pool.slots || null} label="Slots in use" text={text} plain />
        </span>
      );
    },
  },
  {
    id: "queued",
    header: "Waiting",
    width: 84,
    align: "right",
    sort: (pool) => pool.all_queued ?? pool.queued,
    cell: (pool) => formatCount(pool.all_queued ?? pool.queued),
  },
  {
    id: "workers",
    header: "Workers",
    width: 116,
    align: "right",
    hide: "narrow",
    cell: (pool) => (
      <span title="Online and not draining, of all that are registered">
        {pool.workers}
        <span className="muted"> of {pool.registered_workers}</span>
      </span>
    ),
  },
  {
    id: "projects",
    header: "Projects",
    width: 96,
    align: "right",
    hide: "medium",
    cell: (pool) => (
      <span title={pool.projects.map((one) => one.project).join(", ")}>{pool.projects.length}</span>
    ),
  },
  {
    id: "wall",
    header: "Wall time",
    width: 216,
    hide: "wide",
    cell: (pool) => <span className="muted">{describeWallTimes(pool)}</span>,
  },
];
