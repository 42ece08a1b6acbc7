import { Radio, TextInput } from "@mantine/core";
import { useState } from "react";
import { FormDialog } from "./FormDialog";

/** Where a run begins, and why it is trained again. */
export interface RetryForm {
  origin: "newest" | "start";
  /** Kept in the audit log; empty for none. */
  reason: string;
}

interface RetryDialogProps {
  title: string;
  submit: string;
  /** Whether there are several runs. */
  several?: boolean;
  isPending: boolean;
  onSubmit(form: RetryForm): void;
  onClose(): void;
}

/** Asks from where runs are trained again, and why. */
export function RetryDialog(props: RetryDialogProps) {
  const { several = false, isPending, onSubmit, onClose } = props;
  const [origin, setOrigin] = useState<RetryForm["origin"]>("newest");
  const [reason, setReason] = useState("");
  return (
    <FormDialog
      opened
      title={props.title}
      submit={props.submit}
      isPending={isPending}
      onSubmit={() => onSubmit({ origin, reason: reason.trim() })}
      onClose={onClose}
    >
      <Radio.Group
        aria-label={several ? "Where the runs begin" : "Where the run begins"}
        value={origin}
        onChange={(value) => setOrigin(value as RetryForm["origin"])}
      >
        <div className="stack" style={{ gap: 10 }}>
          <Radio
            value="newest"
            label="From the newest snapshot"
            description={`Or from the start, where ${several ? "a run" : "it"} has none`}
          />
          <Radio
            value="start"
            label="From the start"
            description={`Supersedes all that ${several ? "the runs have" : "it has"} recorded`}
          />
        </div>
      </Radio.Group>
      <TextInput
        label="Reason"
        description="Kept in the audit log; may be left out"
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
