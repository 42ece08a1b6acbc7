import { NumberInput, SegmentedControl, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { setThreshold } from "@/api/thresholds";
import type { Threshold } from "@/api/types";
import { makeSlug } from "@/lib/slug";
import { FormDialog } from "@/ui/FormDialog";

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const FIELDS = ["path/threshold", "/series", "/value"];

/** Says how a name that no filter could write is written instead. */
function refuseName(name: string): string | undefined {
  if (name === "" || NAME.test(name)) return undefined;
  const near = makeSlug(name);
  return `Write it in lower-case letters, digits and single hyphens${near && `: ${near}`}`;
}

interface ThresholdDialogProps {
  slug: string;
  /** The one that is changed; `null` for a new one. */
  threshold: Threshold | null;
  onDone(): Promise<void>;
  onClose(): void;
}

/** Declares a threshold, or changes one, whose kept crossings are computed anew then. */
export function ThresholdDialog({ slug, threshold, onDone, onClose }: ThresholdDialogProps) {
  const [name, setName] = useState(threshold?.name ?? "");
  const [series, setSeries] = useState(threshold?.series ?? "evaluation/mean");
  const [value, setValue] = useState<number | string>(threshold?.value ?? "");
  const [direction, setDirection] = useState<Threshold["direction"]>(
    threshold?.direction ?? "at_least",
  );
  const save = useMutation({
    mutationFn: () =>
      setThreshold(slug, name.trim(), { series: series.trim(), value: Number(value), direction }),
    onSuccess: onDone,
  });
  return (
    <FormDialog
      opened
      title={threshold === null ? "Declare a threshold" : `Change the threshold ${threshold.name}`}
      submit={threshold === null ? "Declare" : "Change"}
      isPending={save.isPending}
      incomplete={!NAME.test(name.trim()) || series.trim() === "" || value === ""}
      problem={findFaultBeside(save.error, FIELDS)}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens; lists call it reached.NAME"
        placeholder="solved"
        required
        {...(threshold !== null && { readOnly: true, variant: "filled" })}
        maxLength={64}
        value={name}
        error={refuseName(name.trim()) ?? findFaultAt(save.error, "path/threshold")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Series"
        required
        maxLength={128}
        value={series}
        error={findFaultAt(save.error, "/series")}
        onChange={(event) => setSeries(event.currentTarget.value)}
      />
      <SegmentedControl
        aria-label="Which values reach it"
        value={direction}
        data={[
          { value: "at_least", label: "At least the value" },
          { value: "at_most", label: "At most the value" },
        ]}
        onChange={(chosen) => setDirection(chosen as Threshold["direction"])}
      />
      <NumberInput
        label="Value"
        required
        hideControls
        value={value}
        error={findFaultAt(save.error, "/value")}
        onChange={setValue}
      />
    </FormDialog>
  );
}
