import { Button } from "@mantine/core";
import { compareExperiments, refuseComparison } from "@/lib/compare";
import { CompareLink } from "@/ui/CompareLink";
import { IconX } from "@/ui/icons";

interface CompareButtonProps {
  project: string;
  /** IDs of the selected experiments. */
  experiments: readonly string[];
  onClear(): void;
}

/** Leads to the comparison of the selected experiments; nothing without a selection. */
export function CompareButton({ project, experiments, onClear }: CompareButtonProps) {
  if (experiments.length === 0) return null;
  return (
    <>
      <Button variant="subtle" leftSection={<IconX size={14} />} onClick={onClear}>
        {experiments.length} selected
      </Button>
      <CompareLink
        project={project}
        search={compareExperiments(experiments)}
        reason={refuseComparison(experiments.length, "experiments")}
      />
    </>
  );
}
