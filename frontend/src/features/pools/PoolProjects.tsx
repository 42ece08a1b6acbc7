import { ActionIcon, Button, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { admitProject, removeProject } from "@/api/pools";
import { projectsQuery } from "@/api/projects";
import type { Pool, PoolProject } from "@/api/types";
import { formatDay, formatMoment, formatPlural } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { IconX } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./Pools.module.css";
import { QuotaDialog } from "./QuotaDialog";
import { usePoolAction } from "./usePoolRefresh";

/** The projects whose jobs run in a pool, with their shares. */
export function PoolProjects({ pool }: { pool: Pool }) {
  const admit = usePoolAction(({ project, share }: { project: string; share: number }) =>
    admitProject(pool.name, project, share),
  );
  const remove = usePoolAction((project: string) => removeProject(pool.name, project));
  const [limited, setLimited] = useState<string | null>(null);
  const columns = useMemo(
    () => projectColumns(admit.mutate, remove.mutate, setLimited),
    [admit.mutate, remove.mutate],
  );
  return (
    <Panel
      flush
      title="Projects"
      aside={<span>{formatPlural(pool.projects.length, "project")} admitted</span>}
    >
      {pool.projects.length === 0 ? (
        <p className={classes.note}>
          The pool admits no project, so no job can be submitted to it. Add one here.
        </p>
      ) : (
        <DataTable
          label="Admitted projects"
          rows={pool.projects}
          columns={columns}
          rowId={(row) => row.project}
        />
      )}
      <AddProject
        pool={pool}
        isPending={admit.isPending}
        add={(project) => admit.mutate({ project, share: 1 })}
      />
      {limited !== null && (
        <QuotaDialog pool={pool.name} project={limited} onClose={() => setLimited(null)} />
      )}
    </Panel>
  );
}

interface AddProjectProps {
  pool: Pool;
  isPending: boolean;
  add(project: string): void;
}

function AddProject({ pool, isPending, add }: AddProjectProps) {
  const [chosen, setChosen] = useState<string | null>(null);
  const known = useQuery(projectsQuery).data ?? [];
  const admitted = new Set(pool.projects.map((one) => one.project));
  const others = known.filter((one) => !admitted.has(one.slug));
  if (others.length === 0) return null;
  return (
    <form
      className={classes.add}
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen !== null) add(chosen);
        setChosen(null);
      }}
    >
      <Select
        aria-label="Project to admit"
        placeholder="Another project"
        data={others.map((one) => ({ value: one.slug, label: one.name }))}
        value={chosen}
        onChange={setChosen}
        searchable
      />
      <Button type="submit" variant="default" loading={isPending} disabled={chosen === null}>
        Admit
      </Button>
    </form>
  );
}

function projectColumns(
  admit: (of: { project: string; share: number }) => void,
  remove: (project: string) => void,
  limit: (project: string) => void,
): Column<PoolProject>[] {
  return [
    {
      id: "project",
      header: "Project",
      cell: (row) => (
        <span className={classes.name}>
          <Link to="/p/$project/settings" params={{ project: row.project }}>
            {row.name}
          </Link>
        </span>
      ),
    },
    {
      id: "share",
      header: "Share",
      width: 92,
      cell: (row) => <ShareField row={row} onChange={admit} />,
    },
    {
      id: "since",
      header: "Since",
      width: 112,
      align: "right",
      hide: "narrow",
      cell: (row) => <span title={formatMoment(row.since)}>{formatDay(row.since)}</span>,
    },
    {
      id: "quotas",
      header: "",
      width: 104,
      align: "right",
      cell: (row) => (
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={`Quotas of ${row.project}`}
          onClick={() => limit(row.project)}
        >
          Quotas…
        </Button>
      ),
    },
    {
      id: "remove",
      header: "",
      width: 48,
      align: "right",
      cell: (row) => (
        <ActionIcon
          size={22}
          aria-label={`Remove ${row.project} from the pool`}
          title="Remove: its queued jobs wait, its running ones go on"
          onClick={() => remove(row.project)}
        >
          <IconX size={14} />
        </ActionIcon>
      ),
    },
  ];
}

interface ShareFieldProps {
  row: PoolProject;
  onChange(of: { project: string; share: number }): void;
}

function ShareField({ row, onChange }: ShareFieldProps) {
  const [typed, setTyped] = useState(String(row.share));
  const send = () => {
    const share = Number(typed.replace(",", "."));
    if (Number.isFinite(share) && share > 0 && share !== row.share)
      onChange({ project: row.project, share });
    else setTyped(String(row.share));
  };
  return (
    <TextInput
      aria-label={`Share of ${row.project}`}
      title="Weight of the project among those of the pool"
      className={classes.share ?? ""}
      variant="unstyled"
      inputMode="decimal"
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={send}
      onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
    />
  );
}
