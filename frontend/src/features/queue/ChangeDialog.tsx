import { NumberInput, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { changeJob } from "@/api/actions";
import type { Job, JobChange, PriorityClass } from "@/api/types";
import { formatHours, parseHours } from "@/lib/hours";
import { FormDialog } from "@/ui/FormDialog";
import { PreviewPanel } from "./PreviewPanel";
import { CLASSES } from "./search";
import { CLASS_HINTS } from "./WaitingMenu";

/** Time without a keystroke after which the effect of a change is computed. */
const PAUSE_MS = 350;

interface ChangeDialogProps {
  job: Job;
  /** The loaded jobs by ID. */
  jobs: ReadonlyMap<string, Job>;
  onDone(job: Job, change: JobChange): void;
  onClose(): void;
}

/** Changes class, priority and limits of a waiting job. */
export function ChangeDialog({ job, jobs, onDone, onClose }: ChangeDialogProps) {
  const [priorityClass, setPriorityClass] = useState<PriorityClass>(job.priority_class);
  const [priority, setPriority] = useState<number | string>(job.priority);
  const [hours, setHours] = useState(formatHours(job.limits.wall_seconds));
  const [attempts, setAttempts] = useState<number | string>(job.limits.max_attempts ?? 20);
  const wall = parseHours(hours);
  const change = buildChange(job, { priorityClass, priority, wall, attempts });
  const save = useMutation({
    mutationFn: () => changeJob(job.id, change),
    onSuccess: () => {
      onDone(job, change);
      onClose();
    },
  });
  const isUnchanged = Object.keys(change).length === 0;
  const isWrong = Number.isNaN(wall) || priority === "" || attempts === "";
  const [settled] = useDebouncedValue(
    isUnchanged || isWrong ? "" : JSON.stringify(change),
    PAUSE_MS,
  );
  const wanted = useMemo(
    () => (settled === "" ? null : { jobId: job.id, change: JSON.parse(settled) as JobChange }),
    [settled, job.id],
  );
  return (
    <FormDialog
      opened
      title="Change a waiting job"
      submit="Change"
      leave="Leave it"
      isPending={save.isPending}
      incomplete={isUnchanged || isWrong}
      problem={save.error?.message}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Select
        label="Class"
        allowDeselect={false}
        data={CLASSES.map((one) => ({ value: one, label: `${one}: ${CLASS_HINTS[one]}` }))}
        value={priorityClass}
        onChange={(value) => value && setPriorityClass(value as PriorityClass)}
      />
      <NumberInput
        label="Priority among the person's own jobs"
        description="The highest starts first; it takes nothing from others"
        allowDecimal={false}
        value={priority}
        onChange={setPriority}
      />
      <TextInput
        label="Time limit in hours"
        description="Empty takes the default of the pool"
        value={hours}
        error={Number.isNaN(wall) ? "Type hours, for example 1.5" : null}
        onChange={(event) => setHours(event.currentTarget.value)}
      />
      <NumberInput
        label="Attempts at most"
        min={1}
        allowDecimal={false}
        value={attempts}
        onChange={setAttempts}
      />
      <PreviewPanel wanted={wanted} jobs={jobs} />
    </FormDialog>
  );
}

interface Typed {
  priorityClass: PriorityClass;
  priority: number | string;
  wall: number | null;
  attempts: number | string;
}

function buildChange(job: Job, typed: Typed): JobChange {
  const limits = {
    ...(typed.wall !== (job.limits.wall_seconds ?? null) ? { wall_seconds: typed.wall } : {}),
    ...(Number(typed.attempts) !== (job.limits.max_attempts ?? 20)
      ? { max_attempts: Number(typed.attempts) }
      : {}),
  };
  return {
    ...(typed.priorityClass !== job.priority_class ? { priority_class: typed.priorityClass } : {}),
    ...(Number(typed.priority) !== job.priority ? { priority: Number(typed.priority) } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
  } as JobChange;
}
