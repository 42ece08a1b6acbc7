import { Link } from "@tanstack/react-router";
import { IconPlus } from "./icons";
import { PermittedLink } from "./PermittedLink";

interface NewExperimentButtonProps {
  project: string;
  /** Why the user may not submit to the project; `null` for those who may. */
  reason: string | null;
}

/** Leads to the form of a new experiment. */
export function NewExperimentButton({ project, reason }: NewExperimentButtonProps) {
  return (
    <PermittedLink
      reason={reason}
      leftSection={<IconPlus size={15} />}
      link={(props) => <Link to="/p/$project/new" params={{ project }} {...props} />}
    >
      New experiment
    </PermittedLink>
  );
}
