import { Select, Switch } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { experimentQuery, experimentsQuery } from "@/api/queries";
import type { ExperimentDetail } from "@/api/types";
import { type DiffLine, diff, type Json, lines, onlyChanges } from "@/lib/jsonDiff";
import { CopyButton } from "@/ui/Copy";
import { Panel } from "@/ui/Page";
import classes from "./DefinitionPanel.module.css";
import type { ChangeSearch, ExperimentSearch } from "./search";

interface DefinitionPanelProps {
  experiment: ExperimentDetail;
  search: ExperimentSearch;
  change: ChangeSearch;
}

/** The definition of an experiment, and its difference from another experiment's definition. */
export function DefinitionPanel({ experiment, search, change }: DefinitionPanelProps) {
  const others = useInfiniteQuery(experimentsQuery(experiment.project, {}));
  const other = useQuery({
    ...experimentQuery(experiment.project, search.against ?? ""),
    enabled: search.against !== undefined,
  });
  const choices = useMemo(() => {
    const all = others.data?.pages.flatMap((page) => page.items) ?? [];
    const rest = all.filter((one) => one.id !== experiment.id);
    return rest.map((one) => ({ value: one.id, label: `${one.name} · ${one.id.slice(-6)}` }));
  }, [others.data, experiment.id]);
  const against = search.against !== undefined && other.data ? other.data : null;
  const rows = useMemo(() => {
    const mine = selectIdentity(experiment);
    if (against === null)
      return lines(mine).map((line): DiffLine => ({ ...line, status: "same", other: null }));
    const compared = diff(mine, selectIdentity(against));
    return search.changes ? onlyChanges(compared) : compared;
  }, [experiment, against, search.changes]);
  const changed = rows.filter((row) => row.status !== "same" && row.kind !== "branch").length;
  return (
    <Panel
      title="Definition"
      flush
      aside={
        <CopyButton text={JSON.stringify(experiment.definition, null, 2)} label="Copy as JSON" />
      }
      className={classes.panel}
    >
      <div className={classes.compare}>
        <Select
          aria-label="Compare with another experiment"
          placeholder="Compare with…"
          data={choices}
          value={search.against ?? null}
          onChange={(id) =>
            change({ against: id ?? undefined, ...(id === null ? { changes: undefined } : {}) })
          }
          searchable
          clearable
          nothingFoundMessage="No other experiment"
        />
        {against !== null && (
          <div className={classes.summary}>
            <span>
              {changed === 0
                ? "Nothing differs"
                : changed === 1
                  ? "1 value differs"
                  : `${changed} values differ`}
            </span>
            <Switch
              label="Only differences"
              checked={search.changes ?? false}
              onChange={(event) => change({ changes: event.currentTarget.checked || undefined })}
            />
          </div>
        )}
      </div>
      <dl className={classes.tree} data-testid="definition">
        {rows.map((row) => (
          <Row key={`${row.pointer}:${row.status}`} row={row} />
        ))}
      </dl>
    </Panel>
  );
}

function Row({ row }: { row: DiffLine }) {
  const indent = { paddingLeft: 14 + row.depth * 14 };
  if (row.kind === "branch") {
    return (
      <div className={classes.branch} data-status={row.status}>
        <dt style={indent}>{row.key}</dt>
        <dd />
      </div>
    );
  }
  return (
    <div className={classes.leaf} data-status={row.status} title={row.pointer}>
      <dt style={indent}>{row.key}</dt>
      <dd data-kind={row.kind}>
        {row.other !== null && (
          <del>
            <span className="hidden-visually">other: </span>
            {row.other}
          </del>
        )}
        {row.text}
      </dd>
    </div>
  );
}

/**
 * The parts of an experiment that its ID is computed from: the definition without name and notes,
 * and code outside Palestra.
 */
export function selectIdentity({
  definition,
  code,
}: Pick<ExperimentDetail, "definition" | "code">): Json {
  const { kind: _kind, name: _name, notes: _notes, schema_version: _version, ...rest } = definition;
  const isExternal = code.kind !== "builtin" || code.environment != null;
  return (isExternal ? { ...rest, code } : rest) as unknown as Json;
}
