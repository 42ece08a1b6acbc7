import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { IconPlus } from "./icons";
import { Permitted } from "./Permitted";

interface NewExperimentButtonProps {
  project: string;
  /** Why the user may not submit to the project; `null` for those who may. */
  reason: string | null;
}

/** Leads to the form of a new experiment. */
export function NewExperimentButton({ project, reason }: NewExperimentButtonProps) {
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
