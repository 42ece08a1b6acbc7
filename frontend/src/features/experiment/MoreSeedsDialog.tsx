import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { keys } from "@/api/queries";
import { jobQuery } from "@/api/queueQueries";
import { buildSeedSubmission, previewQuery, submitDocument } from "@/api/submissions";
import type { ExperimentDetail, Job, Run } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { formatSeeds, parseSeeds, proposeSeeds } from "@/lib/seeds";
import { FormDialog } from "@/ui/FormDialog";
import { Message } from "@/ui/Message";

interface MoreSeedsProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
  /** Seeds that the field holds at first; by default the lowest that are not in use. */
  proposed?: readonly number[];
  onClose(): void;
}

const PROPOSED = 2;
const PAUSE_MS = 300;

/** Asks for seeds that the experiment does not have, and trains them with its definition. */
export function MoreSeedsDialog({ experiment, runs, proposed, onClose }: MoreSeedsProps) {
  const client = useQueryClient();
  const jobId = runs.find((run) => run.job_id !== null)?.job_id ?? null;
  const job = useQuery({ ...jobQuery(jobId ?? ""), enabled: jobId !== null });
  const used = runs.map((run) => run.seed);
  const [typed, setTyped] = useState(() => formatSeeds(proposed ?? proposeSeeds(PROPOSED, used)));
  const fault = findSeedFault(typed, used);
  const options = jobId === null ? null : job.data;
  const preview = usePreview(experiment, options, fault === null ? typed : null);
  const isOther = preview.data !== undefined && preview.data.experiment_id !== experiment.id;
  const submit = useMutation({
    mutationFn: () =>
      submitDocument(
        experiment.project,
        buildSeedSubmission(experiment, options ?? null, readSeeds(typed)),
      ),
    onSuccess: () => {
      notifications.show({
        message: `Queued: ${formatPlural(readSeeds(typed).length, "more run")}`,
      });
      void client.invalidateQueries({
        queryKey: keys.experiment(experiment.project, experiment.id),
      });
      void client.invalidateQueries({ queryKey: keys.experiments });
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title={`Train more seeds of ${experiment.name}`}
      submit={`Submit ${formatPlural(fault === null ? readSeeds(typed).length : 0, "run")}`}
      isPending={submit.isPending}
      incomplete={fault !== null || isOther || options === undefined}
      problem={submit.error?.message ?? preview.error?.message}
      onSubmit={() => submit.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Seeds"
        description={`It has ${used.length === 1 ? "seed" : "seeds"} ${formatSeeds([...new Set(used)].sort((a, b) => a - b)) || "none"}`}
        placeholder="0-2, 7"
        data-autofocus
        value={typed}
        error={fault}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      {isOther ? (
        <p role="alert">
          The code of its agent or environment has changed on the workers since, so these seeds
          would make another experiment. Clone it to train with the new code.
        </p>
      ) : (
        preview.data && (
          <p className="muted" aria-live="polite">
            <Message text={preview.data.sentence} /> {formatPlural(preview.data.jobs, "job")} of the
            pool {preview.data.pool}, with the options of its runs.
          </p>
        )
      )}
    </FormDialog>
  );
}

/** What is wrong with the typed seeds. */
function findSeedFault(typed: string, used: readonly number[]): string | null {
  const seeds = parseSeeds(typed);
  if (typeof seeds === "string") return seeds;
  const twice = seeds.filter((seed) => used.includes(seed));
  return twice.length === 0 ? null : `It has ${formatSeeds(twice)} already.`;
}

function readSeeds(typed: string): number[] {
  const seeds = parseSeeds(typed);
  return typeof seeds === "string" ? [] : seeds;
}

function usePreview(
  experiment: ExperimentDetail,
  job: Job | null | undefined,
  typed: string | null,
) {
  const [settled] = useDebouncedValue(typed, PAUSE_MS);
  const document = buildSeedSubmission(experiment, job ?? null, readSeeds(settled ?? ""));
  return useQuery({
    ...previewQuery(experiment.project, document),
    enabled: settled !== null && job !== undefined,
  });
}
