import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { usePermission } from "@/api/access";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlus } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import { BelowList } from "@/ui/ShowMore";

const SUBMIT = "palestra submit examples/cartpole-dqn.yaml --seeds 0-2";

interface NoRunsProps {
  project: string;
  isFiltered: boolean;
  onClear(): void;
}

/** Says why no run is listed, and what would fill the list. */
export function NoRuns({ project, isFiltered, onClear }: NoRunsProps) {
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
      actions={<NewExperiment project={project} />}
      command={`${SUBMIT} --server ${window.location.origin}`}
    >
      Submit an experiment with some seeds: each seed is a run, whose row follows its training.
    </EmptyState>
  );
}

function NewExperiment({ project }: { project: string }) {
  const { reason } = usePermission("run.submit", project);
  const icon = <IconPlus size={15} />;
  if (reason !== null)
    return (
      <Permitted reason={reason}>
        <Button leftSection={icon}>New experiment</Button>
      </Permitted>
    );
  return (
    <Button
      leftSection={icon}
      renderRoot={(props) => <Link to="/p/$project/new" params={{ project }} {...props} />}
    >
      New experiment
    </Button>
  );
}
