import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/client";
import { provenanceQuery } from "@/api/queries";
import type { RunDetail } from "@/api/types";
import { formatMoment } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { CodeBlock, CopyButton } from "@/ui/Copy";
import { EmptyState } from "@/ui/EmptyState";
import { Facts } from "@/ui/Facts";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { JsonTree } from "./JsonTree";
import classes from "./ProvenanceTab.module.css";

type Fields = Record<string, unknown>;

/** The provenance of the run: its submission, and the packages and hardware of each attempt. */
export function ProvenanceTab({ run }: { run: RunDetail }) {
  const query = useQuery(provenanceQuery(run.id));
  const problem = findQueryError(query);
  if (query.isPending && problem === null) return <Skeleton height={300} radius={10} />;
  if (query.data === undefined) {
    return (
      <Panel>
        <Failure error={problem as unknown as ApiError} retry={() => void query.refetch()} />
      </Panel>
    );
  }
  const { submission, attempts } = query.data;
  return (
    <div className={classes.columns}>
      <Panel
        title="Submission"
        aside={<CopyButton text={JSON.stringify(query.data, null, 2)} label="Copy all as JSON" />}
      >
        <Submission run={run} fields={submission} />
      </Panel>
      <div className="stack">
        {attempts.length === 0 && (
          <Panel title="Attempts">
            <EmptyState small title="No attempt yet">
              Packages, hardware and the code that really ran are recorded when a worker begins.
            </EmptyState>
          </Panel>
        )}
        {attempts.map((attempt, i) => (
          <Panel
            key={String(attempt.attempt_id ?? attempt.id ?? i)}
            title={`Attempt ${String(attempt.number ?? i + 1)}`}
          >
            <JsonTree value={attempt} />
          </Panel>
        ))}
      </div>
    </div>
  );
}

function Submission({ run, fields }: { run: RunDetail; fields: Fields }) {
  if (Object.keys(fields).length === 0) {
    return (
      <EmptyState small title="Nothing was recorded" command="palestra submit FILE --seeds 0-2">
        The run was submitted over the API without a provenance record; the command records one by
        itself.
      </EmptyState>
    );
  }
  const { argv, command, git, ...rest } = fields;
  const line = text(command) ?? (Array.isArray(argv) ? argv.join(" ") : null);
  const { diff, patch, ...repository } = (git ?? {}) as Fields;
  const changes = text(diff) ?? text(patch);
  return (
    <div className="stack">
      {line && <CodeBlock text={line} label="Command" />}
      <Facts
        items={[
          ["Run", <code key="run">{run.id}</code>],
          ["Seed", run.seed],
          ["Created", formatMoment(run.created_at)],
        ]}
      />
      {Object.keys(repository).length > 0 && (
        <details open>
          <summary className={classes.summary}>git</summary>
          <JsonTree value={repository} />
        </details>
      )}
      {changes && (
        <details open>
          <summary className={classes.summary}>Uncommitted changes</summary>
          <Diff content={changes} />
        </details>
      )}
      {Object.keys(rest).length > 0 && <JsonTree value={rest} />}
    </div>
  );
}

function Diff({ content }: { content: string }) {
  return (
    <pre className={classes.diff}>
      {content.split("\n").map((line, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines of a stored text never move
        <span key={i} data-kind={kindOf(line)}>
          {line || " "}
        </span>
      ))}
    </pre>
  );
}

function kindOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ")) return "file";
  if (line.startsWith("@@")) return "hunk";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
