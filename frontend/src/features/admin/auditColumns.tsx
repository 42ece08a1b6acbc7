import type { AuditEntry } from "@/api/types";
import { formatMoment, shortenId } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { IconBan } from "@/ui/icons";
import classes from "./Audit.module.css";

/** The name of the user who acted, or of the process if no user did. */
export function nameActor(entry: AuditEntry): string {
  if (entry.user) return entry.user;
  if (entry.user_id !== null) return `deleted user ${shortenId(entry.user_id)}`;
  const [kind, name = ""] = entry.actor.split(":");
  return kind === "daemon" ? name : `${kind} ${shortenId(name)}`.trim();
}

export function Outcome({ entry }: { entry: AuditEntry }) {
  if (entry.outcome === "allowed") return <span className="muted">allowed</span>;
  return (
    <span className={classes.refused}>
      {entry.code ?? "refused"}
      {entry.count > 1 && ` × ${entry.count}`}
    </span>
  );
}

/** The states before and after a change of a job. */
function StateChange({ entry: { data } }: { entry: AuditEntry }) {
  if (typeof data.from !== "string" || typeof data.to !== "string") return null;
  return <span className="muted">{` ${data.from} → ${data.to}`}</span>;
}

export const auditColumns: Column<AuditEntry>[] = [
  {
    id: "at",
    header: "Time",
    width: 144,
    cell: (entry) => (
      <span title={formatMoment(entry.at)}>{formatMoment(entry.at).slice(0, 16)}</span>
    ),
  },
  {
    id: "who",
    header: "Who",
    width: 104,
    cell: (entry) => <span title={entry.actor}>{nameActor(entry)}</span>,
  },
  {
    id: "action",
    header: "Action",
    cell: (entry) => (
      <span
        className={entry.outcome === "refused" ? classes.refused : classes.kind}
        title={entry.action}
      >
        {entry.outcome === "refused" && <IconBan size={13} aria-label="refused:" />}
        <span className="clip">{entry.action}</span>
        <StateChange entry={entry} />
      </span>
    ),
  },
  {
    id: "object",
    header: "Object",
    hide: "narrow",
    cell: (entry) => (
      <span title={entry.object_id}>
        <span className="muted">{entry.object_type}</span>{" "}
        <span className="mono">{shortenId(entry.object_id)}</span>
      </span>
    ),
  },
  {
    id: "outcome",
    header: "Outcome",
    width: 176,
    hide: "narrow",
    cell: (entry) => <Outcome entry={entry} />,
  },
  {
    id: "address",
    header: "From",
    width: 132,
    hide: "medium",
    cell: (entry) => <span className="mono muted">{entry.address ?? "–"}</span>,
  },
  {
    id: "id",
    header: "Entry",
    width: 76,
    align: "right",
    hide: "medium",
    cell: (entry) => entry.id,
  },
];
