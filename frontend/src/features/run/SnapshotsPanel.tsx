import { ActionIcon, Menu, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { listMeasures, type Measures } from "@/api/definition";
import { archiveAddress, contentAddress, snapshotsQuery } from "@/api/queries";
import type { RunDetail, Snapshot } from "@/api/types";
import {
  formatAge,
  formatBytes,
  formatCount,
  formatMoment,
  formatValue,
  toNumber,
} from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { CopyButton } from "@/ui/Copy";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { IconDownload } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./FilesTab.module.css";

const at = (counter: Measures["counter"]): Column<Snapshot> => ({
  id: counter,
  header: counter.replace("_", " "),
  width: 110,
  align: "right",
  sort: (row) => row[counter],
  cell: (row) => <b>{formatCount(row[counter])}</b>,
});

const STATES: Partial<Record<Snapshot["state"], string>> = {
  uploading: "The worker is uploading it",
  skipped: "Not uploaded: a newer snapshot replaced it, or its attempt ended first",
};

const COLUMNS: Column<Snapshot>[] = [
  {
    id: "marks",
    header: "Kept as",
    width: 170,
    cell: (row) => (
      <span className="row">
        {row.newest && <span className={classes.mark}>newest</span>}
        {row.best && <span className={classes.mark}>best</span>}
        {row.superseded && <span className="faint">superseded</span>}
        {row.state !== "verified" && (
          <span className="faint" title={STATES[row.state]}>
            {row.state}
          </span>
        )}
      </span>
    ),
  },
  {
    id: "score",
    header: "Score",
    width: 84,
    align: "right",
    hide: "narrow",
    sort: (row) => toNumber(row.score),
    cell: (row) => formatValue(row.score),
  },
  { id: "reason", header: "Why", width: 100, hide: "narrow", cell: (row) => row.reason },
  {
    id: "resume",
    header: "Resume",
    width: 100,
    hide: "narrow",
    cell: (row) => (row.resume_exact ? "exact" : "statistical"),
  },
  {
    id: "size",
    header: "Size",
    width: 96,
    align: "right",
    hide: "narrow",
    sort: (row) => row.size,
    cell: (row) => formatBytes(row.size),
  },
  {
    id: "id",
    header: "ID",
    hide: "medium",
    cell: (row) => <code className="faint">{row.id}</code>,
  },
  {
    id: "at",
    header: "When",
    width: 100,
    align: "right",
    hide: "narrow",
    sort: (row) => row.created_at,
    cell: (row) => <span title={formatMoment(row.created_at)}>{formatAge(row.created_at)}</span>,
  },
  {
    id: "download",
    header: "",
    width: 48,
    align: "right",
    cell: (row) => <SnapshotFiles snapshot={row} />,
  },
];

/** The files of a snapshot that the server has, each a download. */
function SnapshotFiles({ snapshot }: { snapshot: Snapshot }) {
  const stored = snapshot.files.flatMap((file) =>
    file.artifact_id === null ? [] : { ...file, id: file.artifact_id },
  );
  if (snapshot.state !== "verified" || stored.length === 0) return null;
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon
          size={22}
          aria-label={`Download the snapshot at ${formatCount(snapshot.env_step)}`}
        >
          <IconDownload size={14} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          component="a"
          href={archiveAddress(snapshot)}
          download={`${snapshot.id}.zip`}
          rightSection={<span className="faint">{formatBytes(snapshot.size)}</span>}
        >
          All files as a ZIP archive
        </Menu.Item>
        <Menu.Divider />
        {stored.map((file) => (
          <Menu.Item
            key={file.name}
            component="a"
            href={contentAddress(file.id)}
            download={file.name}
            rightSection={<span className="faint">{formatBytes(file.size)}</span>}
          >
            {file.name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** The snapshots of the training, their state on the server, and how to download them. */
export function SnapshotsPanel({ run }: { run: RunDetail }) {
  const query = useQuery(snapshotsQuery(run.id));
  const problem = findQueryError(query);
  const rows = (query.data ?? []).filter((row) => row.state !== "deleted");
  const columns = useMemo(
    () => [at(listMeasures(run.definition).counter), ...COLUMNS],
    [run.definition],
  );
  const command = `palestra download ${run.id}`;
  return (
    <Panel
      title="Snapshots"
      flush
      aside={
        rows.length > 0 && (
          <span className={classes.command}>
            <code>{command}</code>
            <CopyButton text={command} label="Copy: downloads the best snapshot" />
          </span>
        )
      }
    >
      {problem !== null && query.data === undefined ? (
        <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton height={120} radius={0} />
      ) : rows.length === 0 ? (
        <EmptyState small title="No snapshot yet">
          {saving(run)}
        </EmptyState>
      ) : (
        <DataTable label="Snapshots" rows={rows} columns={columns} rowId={(row) => row.id} />
      )}
    </Panel>
  );
}

function saving(run: RunDetail): string {
  const { saveEvery: every, unit } = listMeasures(run.definition);
  return every
    ? `A snapshot is saved every ${formatCount(every)} ${unit}, at a pause and at the end.`
    : "A snapshot is saved at a pause and at the end.";
}
