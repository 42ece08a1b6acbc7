import { usePermission } from "@/api/access";
import { writeSubmitCommand } from "@/lib/commands";
import { EmptyState } from "@/ui/EmptyState";
import { NewExperimentButton } from "@/ui/NewExperimentButton";
import { BelowList } from "@/ui/ShowMore";

interface NoRunsProps {
  project: string;
  isFiltered: boolean;
  onClear(): void;
}

/** Says why no run is listed, and what would fill the list. */
export function NoRuns({ project, isFiltered, onClear }: NoRunsProps) {
  const { reason } = usePermission("run.submit", project);
  if (isFiltered)
    return (
      <>
        <EmptyState title="No run matches">
          All terms of the filter must hold. Remove one, or join several values of a term by commas,
          as in <code>state:running,queued</code>.
        </EmptyState>
        <BelowList onClick={onClear}>Clear the filter</BelowList>
      </>
    );
  return (
    <EmptyState
      title="No runs yet"
      actions={<NewExperimentButton project={project} reason={reason} />}
      command={writeSubmitCommand("0-2")}
    >
      Submit an experiment with some seeds: each seed is a run, whose row follows its training.
    </EmptyState>
  );
}
