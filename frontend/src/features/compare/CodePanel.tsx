import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { provenanceQuery } from "@/api/queries";
import type { Provenance } from "@/api/types";
import { diffLines, keepHunks } from "@/lib/lineDiff";
import { CopyButton } from "@/ui/Copy";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import classes from "./Compare.module.css";
import type { PartProps } from "./ComparePage";

const SIGNS = { left: "−", right: "+", both: " " } as const;

interface Git {
  head: string | null;
  diff: string;
}

/** The commits that two runs were submitted from, and how their uncommitted changes differ. */
export function CodePanel({ result, search, change }: PartProps) {
  const [first, second] = result.members;
  const left = search.left ?? first?.run_ids[0] ?? "";
  const right = search.right ?? second?.run_ids[0] ?? "";
  const ofLeft = useQuery(provenanceQuery(left));
  const ofRight = useQuery(provenanceQuery(right));
  const names = result.runs.map((run) => ({
    value: run.run_id,
    label: `${run.experiment}, seed ${run.seed} (…${run.run_id.slice(-6)})`,
  }));
  const nameOf = (id: string) => names.find(({ value }) => value === id)?.label ?? id;
  return (
    <Panel
      flush
      title="Code"
      aside={
        <div className={classes.chosen}>
          <Select
            aria-label="First run"
            data={names}
            value={left}
            onChange={(id) => change({ left: id ?? undefined })}
            allowDeselect={false}
            searchable
            w={300}
          />
          <Select
            aria-label="Second run"
            data={names}
            value={right}
            onChange={(id) => change({ right: id ?? undefined })}
            allowDeselect={false}
            searchable
            w={300}
          />
        </div>
      }
    >
      <ListFrame query={ofLeft}>
        <ListFrame query={ofRight}>
          {ofLeft.data && ofRight.data && (
            <CodeDifference
              left={readGit(ofLeft.data)}
              right={readGit(ofRight.data)}
              names={[nameOf(left), nameOf(right)]}
            />
          )}
        </ListFrame>
      </ListFrame>
    </Panel>
  );
}

interface CodeDifferenceProps {
  left: Git;
  right: Git;
  /** Names of the two runs. */
  names: readonly [string, string];
}

function CodeDifference({ left, right, names }: CodeDifferenceProps) {
  const lines = useMemo(() => keepHunks(diffLines(left.diff, right.diff)), [left, right]);
  if (left.head === null || right.head === null)
    return (
      <EmptyState small title="No commit was recorded">
        A submission by the command within a git work tree records its commit and the changes that
        are not committed.
      </EmptyState>
    );
  const isSame = lines.every((line) => line === null || line.side === null);
  return (
    <>
      <div className={classes.commits}>
        <Commits left={left.head} right={right.head} />
        {isSame ? (
          <p>
            {left.diff === ""
              ? "Neither work tree had uncommitted changes."
              : "Their uncommitted changes are equal."}
          </p>
        ) : (
          <>
            <p>Marked lines are in the uncommitted changes of only one of them:</p>
            <p className={classes.sides}>
              <span>
                <mark data-side="left">−</mark> {names[0]}
              </span>
              <span>
                <mark data-side="right">+</mark> {names[1]}
              </span>
            </p>
          </>
        )}
      </div>
      {!isSame && (
        // The keyboard scrolls long lines.
        <section className={classes.diff} aria-label="Differences of the code" tabIndex={0}>
          <pre>
            {lines.map((line, index) => (
              <span
                // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat
                key={index}
                data-side={line?.side ?? undefined}
                className={line === null ? classes.gap : undefined}
              >
                {line === null ? "⋯" : `${SIGNS[line.side ?? "both"]} ${line.text}`}
              </span>
            ))}
          </pre>
        </section>
      )}
    </>
  );
}

function Commits({ left, right }: { left: string; right: string }) {
  const [first, second] = [left.slice(0, 12), right.slice(0, 12)];
  if (left === right)
    return (
      <p>
        Both were submitted from commit <b className="mono">{first}</b>.
      </p>
    );
  const command = `git diff ${first} ${second}`;
  return (
    <p>
      They were submitted from the commits <b className="mono">{first}</b> and{" "}
      <b className="mono">{second}</b>. Between them: <code>{command}</code>{" "}
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}

/** The record of git, as far as it has the form that the command writes. */
function readGit(provenance: Provenance): Git {
  const git = provenance.submission.git as Record<string, unknown> | null | undefined;
  const isObject = typeof git === "object" && git !== null;
  return {
    head: isObject && typeof git.head === "string" ? git.head : null,
    diff: isObject && typeof git.diff === "string" ? git.diff : "",
  };
}
