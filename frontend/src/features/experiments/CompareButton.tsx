import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { compareExperiments, refuseComparison } from "@/lib/compare";
import { IconColumns, IconX } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";

interface CompareButtonProps {
  project: string;
  /** IDs of the selected experiments. */
  experiments: readonly string[];
  onClear(): void;
}

/** Leads to the comparison of the selected experiments; nothing without a selection. */
export function CompareButton({ project, experiments, onClear }: CompareButtonProps) {
  if (experiments.length === 0) return null;
  const reason = refuseComparison(experiments.length, "experiments");
  const look = { variant: "default", leftSection: <IconColumns size={15} /> } as const;
  return (
    <>
      <Button variant="subtle" leftSection={<IconX size={14} />} onClick={onClear}>
        {experiments.length} selected
      </Button>
      {reason !== null ? (
        <Permitted reason={reason}>
          <Button {...look}>Compare</Button>
        </Permitted>
      ) : (
        <Button
          {...look}
          renderRoot={(props) => (
            <Link
              to="/p/$project/compare"
              params={{ project }}
              search={compareExperiments(experiments)}
              {...props}
            />
          )}
        >
          Compare
        </Button>
      )}
    </>
  );
}
