import { Checkbox } from "@mantine/core";
import { useState } from "react";
import { buildExport, type ExportForm, NEW_EXPORT } from "@/lib/jobForms";
import type { JobDialogProps } from "./EvaluateDialog";
import { FormDialog } from "./FormDialog";
import { PoolSelect, SnapshotSelect } from "./JobFields";

const FORMATS = [
  {
    value: "weights",
    label: "Weights",
    description: "Safetensors, and a description of the network as JSON",
  },
  { value: "program", label: "Program", description: "A torch.export program" },
  {
    value: "onnx",
    label: "ONNX",
    description: "Needs a worker with the packages onnx and onnxscript",
  },
];

/** Asks which files that are needed to act are written, and from which snapshot. */
export function ExportDialog(props: JobDialogProps) {
  const [form, setForm] = useState<ExportForm>(NEW_EXPORT);
  const change = (part: Partial<ExportForm>) => setForm({ ...form, ...part });
  return (
    <FormDialog
      opened
      title={props.title}
      submit={props.submit}
      isPending={props.isPending}
      problem={props.problem}
      onSubmit={() => props.onSubmit(buildExport(form))}
      onClose={props.onClose}
    >
      <Checkbox.Group
        label="Formats"
        description="Without any: those of the definition, or the weights"
        value={form.formats}
        error={props.faultAt("/evaluate/formats")}
        onChange={(formats) => change({ formats })}
      >
        <div className="stack" style={{ gap: 8, marginTop: 8 }}>
          {FORMATS.map((format) => (
            <Checkbox key={format.value} {...format} />
          ))}
        </div>
      </Checkbox.Group>
      <SnapshotSelect
        snapshots={props.snapshots}
        value={form.snapshot}
        error={props.faultAt("/evaluate/snapshot")}
        onChange={(snapshot) => change({ snapshot })}
      />
      <PoolSelect
        pools={props.pools}
        value={form.pool}
        error={props.faultAt("/pool")}
        onChange={(pool) => change({ pool })}
      />
    </FormDialog>
  );
}
