import { Button, Menu } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Job, PriorityClass } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { IconChevronDown } from "@/ui/icons";
import { PreviewPanel } from "./PreviewPanel";
import { CLASSES } from "./search";
import type { Selection, useQueueActions } from "./useQueueActions";
import classes from "./Waiting.module.css";

type Asked = { verb: "pause" | "cancel" } | { verb: "change"; to: PriorityClass };

interface BulkBarProps {
  selected: readonly Job[];
  /** Whether all jobs that match the filters are meant, also those that are not loaded. */
  isAll: boolean;
  hasMore: boolean;
  /** Number of jobs that match the filters, where it is known. */
  total: number | null;
  target: Selection;
  /** The loaded jobs by ID. */
  jobs: ReadonlyMap<string, Job>;
  actions: ReturnType<typeof useQueueActions>;
  onAll(): void;
  onClear(): void;
}

/** What can be done with the selected jobs; each action counts them first. */
export function BulkBar(props: BulkBarProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const { selected, isAll, hasMore, total } = props;
  const every = total === null ? "all" : `all ${formatCount(total)}`;
  return (
    <section className={classes.bulk} aria-label="Selected jobs">
      <b>{isAll ? `${every} that match` : `${formatCount(selected.length)} selected`}</b>
      {!isAll && hasMore && (
        <Button variant="subtle" size="compact-xs" onClick={props.onAll}>
          Select {every} that match
        </Button>
      )}
      <span className={classes.bulkActions}>
        <Menu>
          <Menu.Target>
            <Button variant="default" size="xs" rightSection={<IconChevronDown size={12} />}>
              Class
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {CLASSES.map((to) => (
              <Menu.Item key={to} onClick={() => setAsked({ verb: "change", to })}>
                {to}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
        <Button variant="default" size="xs" onClick={() => setAsked({ verb: "pause" })}>
          Pause…
        </Button>
        <Button
          variant="default"
          size="xs"
          color="red"
          onClick={() => setAsked({ verb: "cancel" })}
        >
          Cancel…
        </Button>
        <Button variant="subtle" size="xs" onClick={props.onClear}>
          Clear
        </Button>
      </span>
      {asked && <Preview {...props} asked={asked} onClose={() => setAsked(null)} />}
    </section>
  );
}

const TITLES = { pause: "Pause jobs", cancel: "Cancel jobs", change: "Change the class" };

function Preview(props: BulkBarProps & { asked: Asked; onClose(): void }) {
  const { asked, target, actions, selected, onClear, onClose } = props;
  const counted = useQuery({
    queryKey: ["count of jobs", asked.verb, target],
    queryFn: () => actions.count(asked.verb, target),
    gcTime: 0,
    staleTime: 0,
  });
  const wanted = useMemo(
    () => ({
      ...target,
      action: asked.verb,
      ...(asked.verb === "change" ? { change: { priority_class: asked.to } } : {}),
    }),
    [target, asked],
  );
  const { matched = 0, not_permitted: others = 0 } = counted.data ?? {};
  const jobs = formatPlural(matched, "job");
  const submit = asked.verb === "change" ? "Change" : asked.verb === "pause" ? "Pause" : "Cancel";
  const act = () => {
    if (asked.verb === "change") void actions.reclass(asked.to, target, selected);
    else actions.end(asked.verb, matched, target);
    onClear();
    onClose();
  };
  return (
    <FormDialog
      opened
      title={TITLES[asked.verb]}
      submit={counted.data === undefined ? submit : `${submit} ${jobs}`}
      leave="Leave them"
      isPending={counted.isPending}
      incomplete={matched === 0}
      destructive={asked.verb === "cancel"}
      problem={counted.error?.message}
      onSubmit={act}
      onClose={onClose}
    >
      {counted.data === undefined ? (
        <p>Counting…</p>
      ) : (
        <>
          <p>
            {asked.verb === "change"
              ? `${jobs} will get the class ${asked.to}. A place to which a job was moved by hand is lost.`
              : asked.verb === "pause"
                ? `${jobs} will be paused. Who pauses a job gives up its place in the queue.`
                : `${jobs} will be cancelled.`}
          </p>
          {asked.verb !== "change" && (
            <p className="muted">It happens 8 seconds later, and can be called off until then.</p>
          )}
          {matched > 0 && <PreviewPanel wanted={wanted} jobs={props.jobs} />}
          {others > 0 && (
            <p className="muted">
              {formatPlural(others, "selected job")} of other people {others === 1 ? "is" : "are"}{" "}
              left alone: only their owners and the maintainers of the project may change them.
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}
