import { ActionIcon, Menu } from "@mantine/core";
import { useMemo, useState } from "react";
import { actOnWorker, type WorkerVerb } from "@/api/pools";
import type { Worker } from "@/api/types";
import { formatAge, formatMoment, formatPlural } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { DrainReason } from "@/ui/DrainReason";
import { FormDialog } from "@/ui/FormDialog";
import { IconDots } from "@/ui/icons";
import { ListFrame, type LoadedQuery } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import { WrongClock } from "@/ui/WrongClock";
import classes from "./Pools.module.css";
import { usePoolAction } from "./usePoolRefresh";

interface PoolWorkersProps {
  query: LoadedQuery;
  workers: readonly Worker[];
}

/** The workers of a pool, with the actions of an administrator. */
export function PoolWorkers({ query, workers }: PoolWorkersProps) {
  const [forgetting, setForgetting] = useState<Worker | null>(null);
  const act = usePoolAction(({ worker, verb }: { worker: Worker; verb: WorkerVerb }) =>
    actOnWorker(worker.id, verb),
  );
  // New columns would close an open menu, and workers are polled.
  const columns = useMemo(
    () =>
      workerColumns((worker, verb) =>
        verb === "forget" ? setForgetting(worker) : act.mutate({ worker, verb }),
      ),
    [act.mutate],
  );
  return (
    <>
      {workers.map((worker) => (
        <DrainReason key={worker.id} worker={worker} />
      ))}
      <Panel flush title="Workers" aside={<span>{formatPlural(workers.length, "worker")}</span>}>
        <ListFrame query={query}>
          {workers.length === 0 ? (
            <p className={classes.note}>
              No worker belongs to the pool yet. Make an enrolment token below; the dialog shows the
              command that starts a worker.
            </p>
          ) : (
            <DataTable
              label="Workers of the pool"
              rows={workers}
              columns={columns}
              rowId={(worker) => worker.id}
            />
          )}
        </ListFrame>
        <FormDialog
          opened={forgetting !== null}
          title={`Forget ${forgetting?.name}?`}
          submit="Forget"
          destructive
          isPending={act.isPending}
          onSubmit={() => {
            if (forgetting !== null) act.mutate({ worker: forgetting, verb: "forget" });
            setForgetting(null);
          }}
          onClose={() => setForgetting(null)}
        >
          <p>
            The worker's secret ends at once, so it can speak to the server no more: its jobs are
            lost to other workers. Its name is free for a machine that enrols anew. Do this when a
            state directory was lost, or a secret leaked.
          </p>
        </FormDialog>
      </Panel>
    </>
  );
}

/** The users whose jobs occupy the busy slots, as far as they are known. */
function listHolders({ slots }: Worker): string {
  return slots
    .filter((slot) => slot.busy)
    .map((slot) =>
      slot.user ? `slot ${slot.index}: ${slot.user} (${slot.project})` : `slot ${slot.index}: busy`,
    )
    .join("\n");
}

function workerColumns(act: (worker: Worker, verb: WorkerVerb) => void): Column<Worker>[] {
  return [
    {
      id: "name",
      header: "Worker",
      cell: (worker) => (
        <span className={classes.name}>
          <b className="clip">{worker.name}</b>
          <span className="muted clip">{worker.host !== worker.name && worker.host}</span>
          <WrongClock worker={worker} />
        </span>
      ),
    },
    {
      id: "state",
      header: "State",
      width: 128,
      cell: (worker) => <StateBadge state={worker.state} bare />,
    },
    {
      id: "slots",
      header: "Slots in use",
      width: 104,
      hide: "narrow",
      cell: (worker) => (
        <span title={listHolders(worker)}>
          {worker.slots.filter((slot) => slot.busy).length} of {worker.slots.length}
        </span>
      ),
    },
    {
      id: "gpus",
      header: "GPUs",
      width: 168,
      hide: "medium",
      cell: ({ gpus }) =>
        gpus.length === 0 ? (
          <span className="faint">none</span>
        ) : (
          `${gpus.length} × ${gpus[0]?.name}`
        ),
    },
    {
      id: "secret",
      header: "Secret",
      width: 148,
      hide: "wide",
      cell: (worker) => <Secret worker={worker} />,
    },
    {
      id: "version",
      header: "Version",
      width: 104,
      hide: "wide",
      cell: ({ version }) => version,
    },
    {
      id: "heartbeat",
      header: "Last heartbeat",
      width: 124,
      align: "right",
      hide: "medium",
      cell: (worker) => (
        <span title={formatMoment(worker.last_heartbeat_at)}>
          {formatAge(worker.last_heartbeat_at)}
        </span>
      ),
    },
    {
      id: "actions",
      header: "",
      width: 52,
      align: "right",
      cell: (worker) => <Actions worker={worker} act={(verb) => act(worker, verb)} />,
    },
  ];
}

function Secret({ worker }: { worker: Worker }) {
  if (worker.secret_rotation === "pending")
    return <span title="It gets the new one with its next heartbeat">being rotated</span>;
  if (worker.secret_rotation === "unsupported")
    return (
      <span className={classes.warn} title="Its version takes no new secret: upgrade the worker">
        needs an upgrade
      </span>
    );
  return worker.secret_since ? (
    <span title={formatMoment(worker.secret_since)}>since {formatAge(worker.secret_since)}</span>
  ) : (
    <span className="faint">never rotated</span>
  );
}

function Actions({ worker, act }: { worker: Worker; act(verb: WorkerVerb): void }) {
  const isDraining = worker.state === "draining";
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon size={22} aria-label={`Actions on ${worker.name}`}>
          <IconDots size={15} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => act(isDraining ? "undrain" : "drain")}>
          {isDraining ? "End draining" : "Drain: take no further jobs"}
        </Menu.Item>
        <Menu.Item onClick={() => act("rotate-secret")}>Rotate its secret</Menu.Item>
        <Menu.Divider />
        <Menu.Item c="var(--bad)" onClick={() => act("forget")}>
          Forget…
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
