import { Button, MultiSelect, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { cancelPoolWindow, planPoolWindow, poolWindowsQuery } from "@/api/pools";
import type { Pool, PoolWindow } from "@/api/types";
import { formatMoment } from "@/lib/format";
import { SILENCE_MS } from "@/live/useLiveQueue";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { FormDialog } from "@/ui/FormDialog";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { usePoolRefresh } from "./usePoolRefresh";

interface PoolWindowsProps {
  pool: Pool;
  /** Names of its workers. */
  workers: readonly string[];
}

/** The maintenance windows and reservations of a pool, planned and cancelled here. */
export function PoolWindows({ pool, workers }: PoolWindowsProps) {
  // A window that begins or ends creates no event.
  const query = useQuery({ ...poolWindowsQuery(pool.name), refetchInterval: SILENCE_MS });
  const [planning, setPlanning] = useState(false);
  const [ending, setEnding] = useState<PoolWindow | null>(null);
  const refresh = usePoolRefresh();
  const columns = useMemo(() => buildColumns(setEnding), []);
  return (
    <Panel
      flush
      title="Maintenance and reservations"
      aside={
        <Button variant="default" size="compact-sm" onClick={() => setPlanning(true)}>
          Plan…
        </Button>
      }
    >
      <ListFrame query={query} lines={1}>
        {query.data?.length ? (
          <DataTable
            label="Maintenance and reservations"
            rows={query.data}
            columns={columns}
            rowId={(window) => window.id}
          />
        ) : (
          <EmptyState small title="Nothing is planned">
            Before a maintenance window only jobs start that end in time, and in it none. In a
            reservation only the jobs of one project or person start.
          </EmptyState>
        )}
      </ListFrame>
      {planning && <PlanDialog pool={pool} workers={workers} onClose={() => setPlanning(false)} />}
      {ending && (
        <ConfirmDialog
          title="Cancel this window?"
          submit="Cancel the window"
          act={() => cancelPoolWindow(pool.name, ending.id)}
          onDone={async () => {
            await refresh();
            setEnding(null);
          }}
          onClose={() => setEnding(null)}
        >
          <p>Jobs that wait for its end can start at once.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function buildColumns(onCancel: (window: PoolWindow) => void): Column<PoolWindow>[] {
  return [
    { id: "kind", header: "Kind", cell: describe, sort: describe, wrap: true },
    {
      id: "start",
      header: "From",
      cell: (window) => (window.has_begun ? "now" : formatMoment(window.start).slice(0, 16)),
      sort: (window) => window.start,
    },
    {
      id: "end",
      header: "To",
      cell: (window) => formatMoment(window.end).slice(0, 16),
      sort: (window) => window.end,
    },
    {
      id: "workers",
      header: "Workers",
      cell: (window) => window.workers.join(", ") || "all",
      hide: "narrow",
      wrap: true,
    },
    { id: "reason", header: "Reason", cell: (window) => window.reason, hide: "medium", wrap: true },
    {
      id: "cancel",
      header: "",
      cell: (window) => (
        <Button variant="subtle" size="compact-sm" onClick={() => onCancel(window)}>
          Cancel…
        </Button>
      ),
      align: "right",
    },
  ];
}

function describe(window: PoolWindow): string {
  if (window.kind === "maintenance") return "Maintenance";
  return `Reserved for ${window.project ?? window.user ?? "others"}`;
}

interface PlanDialogProps extends PoolWindowsProps {
  onClose(): void;
}

function PlanDialog({ pool, workers, onClose }: PlanDialogProps) {
  const [kind, setKind] = useState<PoolWindow["kind"]>("maintenance");
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [project, setProject] = useState<string | null>(null);
  const [user, setUser] = useState("");
  const [reason, setReason] = useState("");
  const refresh = usePoolRefresh();
  const reserves = kind === "reservation";
  const plan = useMutation({
    mutationFn: () =>
      planPoolWindow(pool.name, {
        kind,
        start: new Date(start).toISOString(),
        end: new Date(end).toISOString(),
        workers: chosen,
        project: reserves ? project : null,
        user: reserves && user.trim() !== "" ? user.trim() : null,
        reason: reason.trim(),
      }),
    onSuccess: async () => {
      await refresh();
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title={`Plan a time of the pool ${pool.name}`}
      submit="Plan"
      isPending={plan.isPending}
      incomplete={start === "" || end === "" || (reserves && project === null && !user.trim())}
      problem={plan.error?.message}
      onSubmit={() => plan.mutate()}
      onClose={onClose}
    >
      <SegmentedControl
        aria-label="Kind"
        value={kind}
        data={[
          { value: "maintenance", label: "Maintenance" },
          { value: "reservation", label: "Reservation" },
        ]}
        onChange={(value) => setKind(value as PoolWindow["kind"])}
      />
      <TextInput
        label="From"
        type="datetime-local"
        required
        value={start}
        onChange={(event) => setStart(event.currentTarget.value)}
      />
      <TextInput
        label="To"
        description="Jobs without a time limit wait until then"
        type="datetime-local"
        required
        value={end}
        onChange={(event) => setEnd(event.currentTarget.value)}
      />
      <MultiSelect
        label="Workers"
        placeholder={chosen.length === 0 ? "All workers" : ""}
        data={[...workers]}
        value={chosen}
        onChange={setChosen}
        clearable
      />
      {reserves && (
        <>
          <Select
            label="For the project"
            data={pool.projects.map((one) => one.project)}
            value={project}
            onChange={setProject}
            clearable
          />
          <TextInput
            label="Or for the person"
            placeholder="Login name"
            value={user}
            onChange={(event) => setUser(event.currentTarget.value)}
          />
        </>
      )}
      <TextInput
        label="Reason"
        description="Everybody whose jobs wait for the pool reads it"
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
