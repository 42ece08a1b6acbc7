import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { provenanceQuery } from "@/api/queries";
import type { Provenance } from "@/api/types";
import { diffLines, keepHunks } from "@/lib/lineDiff";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import classes from "./Compare.module.css";
import type { PartProps } from "./ComparePage";

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
            w={230}
          />
          <Select
            aria-label="Second run"
            data={names}
            value={right}
            onChange={(id) => change({ right: id ?? undefined })}
            allowDeselect={false}
            searchable
            w={230}
          />
        </div>
      }
    >
      <ListFrame query={ofLeft}>
        <ListFrame query={ofRight}>
          {ofLeft.data && ofRight.data && (
            <CodeDifference left={readGit(ofLeft.data)} right={readGit(ofRight.data)} />
          )}
        </ListFrame>
      </ListFrame>
    </Panel>
  );
}

function CodeDifference({ left, right }: { left: Git; right: Git }) {
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
      <EmptyState
        small
        title={
          left.head === right.head
            ? `Both were submitted from commit ${left.head.slice(0, 12)}`
            : `Commits ${left.head.slice(0, 12)} and ${right.head.slice(0, 12)}`
        }
      >
        {isSame
          ? "Their uncommitted changes are equal."
          : "The lines below are in the uncommitted changes of only one of them."}
        {left.head !== right.head &&
          ` Between the commits: git diff ${left.head.slice(0, 12)} ${right.head.slice(0, 12)}.`}
      </EmptyState>
      {!isSame && (
        <pre className={classes.diff}>
          {lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat
            <span key={index} data-side={line?.side ?? undefined}>
              {line === null
                ? "⋯"
                : `${line.side === "left" ? "−" : line.side === "right" ? "+" : " "} ${line.text}`}
            </span>
          ))}
        </pre>
      )}
    </>
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
