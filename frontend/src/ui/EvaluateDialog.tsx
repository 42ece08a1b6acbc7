import { Radio, Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import {
  buildEvaluation,
  type EvaluateForm,
  type EvaluationPolicy,
  type JobForm,
  NEW_EVALUATION,
} from "@/lib/jobForms";
import { FormDialog } from "./FormDialog";
import classes from "./JobDialogs.module.css";
import { PoolSelect, SnapshotSelect } from "./JobFields";

export interface JobDialogProps {
  title: string;
  /** Label of the button that queues the jobs. */
  submit: string;
  /** Snapshots that can be named besides the newest and the best. */
  snapshots: readonly { value: string; label: string }[];
  pools: readonly string[];
  isPending: boolean;
  /** The server's message about a member, which its field shows. */
  faultAt(pointer: string): string | undefined;
  /** The server's message that no field shows. */
  problem: string | null;
  onSubmit(request: JobForm): void;
  onClose(): void;
}

const POLICIES: { value: EvaluationPolicy; label: string }[] = [
  { value: "greedy", label: "The most probable" },
  { value: "stochastic", label: "Drawn from the policy" },
  { value: "both", label: "Both, on the same seeds" },
];

/** Asks what to evaluate, and how. */
export function EvaluateDialog(props: JobDialogProps) {
  const [form, setForm] = useState<EvaluateForm>(NEW_EVALUATION);
  const change = (part: Partial<EvaluateForm>) => setForm({ ...form, ...part });
  const text = (name: "episodes" | "seed" | "throttle" | "delay", pointer: string) => ({
    inputMode: "numeric" as const,
    value: form[name],
    error: props.faultAt(`/evaluate/${pointer}`),
    onChange: (event: { currentTarget: HTMLInputElement }) =>
      change({ [name]: event.currentTarget.value }),
  });
  return (
    <FormDialog
      opened
      title={props.title}
      submit={props.submit}
      isPending={props.isPending}
      problem={props.problem}
      onSubmit={() => props.onSubmit(buildEvaluation(form))}
      onClose={props.onClose}
    >
      <Radio.Group
        aria-label="What is evaluated"
        value={form.follow ? "follow" : "one"}
        onChange={(value) => change({ follow: value === "follow" })}
      >
        <div className="row wrap" style={{ gap: 20 }}>
          <Radio value="one" label="One snapshot" />
          <Radio value="follow" label="Every snapshot as it comes" />
        </div>
      </Radio.Group>
      {form.follow ? (
        <Switch
          label="On the training's own episodes"
          description="Otherwise on fresh episodes, from a seed of their own"
          checked={form.onTrainData}
          onChange={(event) => change({ onTrainData: event.currentTarget.checked, again: false })}
        />
      ) : (
        <SnapshotSelect
          snapshots={props.snapshots}
          value={form.snapshot}
          error={props.faultAt("/evaluate/snapshot")}
          onChange={(snapshot) => change({ snapshot })}
        />
      )}
      <div className={classes.pair}>
        <TextInput
          label="Episodes"
          description="Or batches of a supervised run"
          placeholder="As in the definition"
          {...text("episodes", "episodes")}
        />
        {!(form.follow && form.onTrainData) && (
          <TextInput
            label="Seed"
            description="Of the episodes"
            placeholder="A fresh one"
            {...text("seed", "seed")}
          />
        )}
      </div>
      {!(form.follow && form.onTrainData) && (
        <Select
          label="Actions"
          description="Another policy than the definition's has a curve of its own, and no score"
          placeholder="As in the definition"
          data={POLICIES}
          clearable
          value={form.policy}
          error={props.faultAt("/evaluate/policy")}
          onChange={(policy) => change({ policy: policy as EvaluationPolicy | null })}
        />
      )}
      {form.follow && (
        <>
          <div className={classes.pair}>
            <TextInput
              label="Least time between two (s)"
              placeholder="0"
              {...text("throttle", "throttle_seconds")}
            />
            <TextInput
              label="Time before the first (s)"
              placeholder="0"
              {...text("delay", "delay_seconds")}
            />
          </div>
          {!form.onTrainData && (
            <Switch
              label="Evaluate the newest again"
              description="With other episodes, while none is newer; needs a time between two"
              checked={form.again}
              onChange={(event) => change({ again: event.currentTarget.checked })}
            />
          )}
        </>
      )}
      <PoolSelect
        pools={props.pools}
        value={form.pool}
        error={props.faultAt("/pool")}
        onChange={(pool) => change({ pool })}
      />
    </FormDialog>
  );
}
