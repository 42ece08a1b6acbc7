import { Button, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { actOnRuns } from "@/api/runActions";
import type { RunSelection, RunVerb } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { Permitted } from "@/ui/Permitted";
import { CompareSelected } from "./CompareSelected";
import classes from "./Runs.module.css";
import { DONE, useRunActions } from "./useRunActions";

interface BulkBarProps {
  project: string;
  /** IDs of the selected runs that are loaded. */
  runs: readonly string[];
  /** Whether all runs that fit the filter are meant, also those that are not loaded. */
  isAll: boolean;
  /** Number of all runs that fit the filter, where it is known. */
  total: number | null;
  selection: RunSelection;
  /** Why the caller may act on no run; `null` if there may be some. */
  reason: string | null;
  onAll(): void;
  onClear(): void;
}

const VERBS: readonly { verb: RunVerb; label: string; title: string }[] = [
  { verb: "pause", label: "Pause", title: "Pause runs" },
  { verb: "resume", label: "Resume", title: "Resume runs" },
  { verb: "retry", label: "Retry", title: "Retry runs" },
  { verb: "cancel", label: "Cancel", title: "Cancel runs" },
];

/** What can be done with the selected runs; each action counts them first. */
export function RunsBulkBar(props: BulkBarProps) {
  const [asked, setAsked] = useState<RunVerb | null>(null);
  const { isAll, total } = props;
  const count = props.runs.length;
  const every = total === null ? "all" : `all ${formatCount(total)}`;
  return (
    <section className={classes.bulk} aria-label="Selected runs">
      <b>{isAll ? `${every} that match` : `${formatCount(count)} selected`}</b>
      {!isAll && (total === null || total > count) && (
        <Button variant="subtle" size="compact-xs" onClick={props.onAll}>
          Select {every} that match
        </Button>
      )}
      <span className={classes.bulkActions}>
        <CompareSelected
          project={props.project}
          runs={props.runs}
          count={isAll ? Math.max(count, total ?? 0) : count}
        />
        {VERBS.map(({ verb, label }) => (
          <Permitted key={verb} reason={props.reason}>
            <Button variant="default" size="compact-xs" onClick={() => setAsked(verb)}>
              {label}…
            </Button>
          </Permitted>
        ))}
        <Button variant="subtle" size="compact-xs" onClick={props.onClear}>
          Clear
        </Button>
      </span>
      {asked && <Preview {...props} verb={asked} onClose={() => setAsked(null)} />}
    </section>
  );
}

const EFFECTS: Record<RunVerb, string> = {
  pause: "They save a snapshot and give their slots back; queued ones lose their place.",
  resume: "They are queued again, and go on from their snapshots.",
  retry: "Each goes on from its newest snapshot, or begins anew without one.",
  cancel: "They save a snapshot and end; curves, evaluations and snapshots stay.",
};

function Preview(props: BulkBarProps & { verb: RunVerb; onClose(): void }) {
  const { verb, project, selection, onClose, onClear } = props;
  const actions = useRunActions(project);
  const [typed, setTyped] = useState("");
  const counted = useQuery({
    queryKey: ["count of runs", verb, project, selection],
    queryFn: () => actOnRuns(project, verb, selection, { dryRun: true }),
    gcTime: 0,
    staleTime: 0,
  });
  const { matched = 0, not_permitted: others = 0, same_jobs: together = 0 } = counted.data ?? {};
  const { label, title } = VERBS.find((one) => one.verb === verb) as (typeof VERBS)[number];
  const runs = formatPlural(matched, "run");
  const asksForNumber = verb === "cancel" && matched > 0;
  const act = () => {
    actions.act(verb, selection, matched);
    onClear();
    onClose();
  };
  return (
    <FormDialog
      opened
      title={title}
      submit={counted.data === undefined ? label : `${label} ${runs}`}
      leave="Leave them"
      isPending={counted.isPending}
      incomplete={matched === 0 || (asksForNumber && typed.trim() !== String(matched))}
      destructive={verb === "cancel"}
      focusSubmit={!asksForNumber}
      problem={counted.error?.message}
      onSubmit={act}
      onClose={onClose}
    >
      {counted.data === undefined ? (
        !counted.isError && <p>Counting…</p>
      ) : (
        <>
          <p>
            {matched === 0
              ? `None of the selected runs can be ${DONE[verb]}: they are in other states.`
              : `${runs} will be ${DONE[verb]}. ${EFFECTS[verb]}`}
          </p>
          {together > 0 && (
            <p>
              {formatPlural(together, "more run")} that {together === 1 ? "is" : "are"} not selected
              train in the same packs, and {together === 1 ? "goes" : "go"} with them.
            </p>
          )}
          {matched > 0 && verb !== "resume" && (
            <p className="muted">It happens 8 seconds later, and can be called off until then.</p>
          )}
          {others > 0 && (
            <p className="muted">
              {formatPlural(others, "selected run")} of other people {others === 1 ? "is" : "are"}{" "}
              left alone: only their owners and the maintainers of the project may change them.
            </p>
          )}
          {asksForNumber && (
            <TextInput
              label={
                <>
                  Type the number of runs, <code>{matched}</code>, to confirm
                </>
              }
              data-autofocus
              autoComplete="off"
              inputMode="numeric"
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}
