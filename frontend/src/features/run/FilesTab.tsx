import { ActionIcon, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/client";
import { contentAddress, filesQuery } from "@/api/queries";
import type { Artifact, RunDetail } from "@/api/types";
import { formatAge, formatBytes, formatMoment } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { CopyButton } from "@/ui/Copy";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { IconDownload } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./FilesTab.module.css";
import { SnapshotsPanel } from "./SnapshotsPanel";

/** Snapshots, exports and other files of the run, to download. */
export function FilesTab({ run }: { run: RunDetail }) {
  return (
    <div className="stack">
      <SnapshotsPanel run={run} />
      <Files run={run} />
    </div>
  );
}

const COLUMNS: Column<Artifact>[] = [
  { id: "name", header: "Name", sort: (row) => row.name, cell: (row) => <Name file={row} /> },
  {
    id: "kind",
    header: "Kind",
    width: 90,
    hide: "narrow",
    sort: (row) => row.kind,
    cell: (row) => row.kind,
  },
  {
    id: "size",
    header: "Size",
    width: 96,
    align: "right",
    sort: (row) => row.size,
    cell: (row) => formatBytes(row.size),
  },
  {
    id: "sha256",
    header: "SHA-256",
    width: 150,
    hide: "medium",
    cell: (row) => (
      <span className={classes.command} title={row.sha256}>
        <code>{row.sha256.slice(0, 10)}…</code>
        <CopyButton text={row.sha256} label="Copy the SHA-256" />
      </span>
    ),
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
  { id: "download", header: "", width: 48, align: "right", cell: (row) => <Download file={row} /> },
];

function Name({ file }: { file: Artifact }) {
  return (
    <span title={file.name}>
      {!file.stored && <span className={classes.pending}>not uploaded yet: </span>}
      {file.name}
    </span>
  );
}

function Download({ file }: { file: Artifact }) {
  if (!file.stored) return null;
  return (
    <ActionIcon
      component="a"
      size={22}
      href={contentAddress(file.id)}
      download={file.name}
      aria-label={`Download ${file.name}`}
    >
      <IconDownload size={14} />
    </ActionIcon>
  );
}

function Files({ run }: { run: RunDetail }) {
  const query = useQuery(filesQuery(run.id));
  const problem = findQueryError(query);
  const rows = (query.data ?? []).filter((row) => row.kind !== "snapshot");
  return (
    <Panel title="Exports, videos and other files" flush>
      {problem !== null && query.data === undefined ? (
        <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton height={120} radius={0} />
      ) : rows.length === 0 ? (
        <EmptyState
          small
          title="No file yet"
          command={`palestra export ${run.id} --format weights`}
        >
          An export writes the weights, a program or ONNX from a snapshot; videos come from the hook
          video.
        </EmptyState>
      ) : (
        <DataTable label="Files" rows={rows} columns={COLUMNS} rowId={(row) => row.id} />
      )}
    </Panel>
  );
}
