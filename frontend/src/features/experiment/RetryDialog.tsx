import { Radio } from "@mantine/core";
import { useState } from "react";
import type { Origin } from "@/api/actions";
import { formatPlural } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";

interface RetryDialogProps {
  /** Number of runs. */
  count: number;
  isPending: boolean;
  onSubmit(origin: Origin): void;
  onClose(): void;
}

/** Asks from where failed runs are trained again. */
export function RetryDialog({ count, isPending, onSubmit, onClose }: RetryDialogProps) {
  const [origin, setOrigin] = useState<Origin>("newest");
  return (
    <FormDialog
      opened
      title={`Retry ${formatPlural(count, "failed run")}?`}
      submit={`Retry ${formatPlural(count, "run")}`}
      isPending={isPending}
      onSubmit={() => onSubmit(origin)}
      onClose={onClose}
    >
      <Radio.Group
        aria-label="Where the runs begin"
        value={origin}
        onChange={(value) => setOrigin(value as Origin)}
      >
        <div className="stack" style={{ gap: 10 }}>
          <Radio
            value="newest"
            label="From the newest snapshot"
            description="Or from the start, where a run has none"
          />
          <Radio
            value="start"
            label="From the start"
            description="Supersedes all that the runs have recorded"
          />
        </div>
      </Radio.Group>
    </FormDialog>
  );
}
