import { Link } from "@tanstack/react-router";
import { type DiffLine, diff, type Json, lines, onlyChanges } from "@/lib/jsonDiff";
import { Panel } from "@/ui/Page";
import classes from "./Submit.module.css";

interface ChangesPanelProps {
  project: string;
  experiment: { id: string; name: string };
  /** The definition of the original and of the form, both without defaults. */
  before: unknown;
  now: unknown;
  /** The definition of the original with its defaults. */
  whole: unknown;
}

/** What differs from the experiment from which the form was filled. */
export function ChangesPanel({ project, experiment, before, now, whole }: ChangesPanelProps) {
  const defaults = new Map(lines(whole as Json).map((line) => [line.pointer, line.text]));
  const rows = onlyChanges(diff(toIdentity(now), toIdentity(before)));
  const leaves = rows.filter((row) => row.status !== "same" && row.kind !== "branch");
  return (
    <Panel
      title="Changes"
      aside={
        <span className="faint">
          from{" "}
          <Link
            to="/p/$project/experiments/$experimentId"
            params={{ project, experimentId: experiment.id }}
          >
            {experiment.name}
          </Link>
        </span>
      }
    >
      {leaves.length === 0 ? (
        <p className="muted">
          Nothing differs yet: it is the same experiment, to which new seeds would be added.
        </p>
      ) : (
        <dl className={classes.changes} data-testid="changes">
          {leaves.map((row) => (
            <Change
              key={`${row.pointer} ${row.status}`}
              row={row}
              before={row.other ?? defaults.get(row.pointer) ?? "unset"}
            />
          ))}
        </dl>
      )}
    </Panel>
  );
}

function Change({ row, before }: { row: DiffLine; before: string }) {
  return (
    <div>
      <dt>{row.pointer.slice(1).replaceAll("/", ".")}</dt>
      <dd>
        <del>{before}</del> {row.status === "removed" ? "default" : row.text}
      </dd>
    </div>
  );
}

/** The members that the experiment's ID is computed from. */
function toIdentity(definition: unknown): Json {
  const known = (definition ?? {}) as Record<string, unknown>;
  const { kind: _kind, name: _name, notes: _notes, schema_version: _version, ...rest } = known;
  return rest as Json;
}
