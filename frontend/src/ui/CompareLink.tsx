import type { ButtonProps } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ComparedSearch } from "@/lib/compare";
import { IconColumns } from "./icons";
import { PermittedLink } from "./PermittedLink";

interface CompareLinkProps extends Pick<ButtonProps, "size"> {
  project: string;
  search: ComparedSearch;
  /** Why they cannot be compared; `null` if they can. */
  reason: string | null;
}

/** A button that leads to the comparison of runs or experiments. */
export function CompareLink({ project, search, ...button }: CompareLinkProps) {
  return (
    <PermittedLink
      {...button}
      variant="default"
      leftSection={<IconColumns size={15} />}
      link={(props) => (
        <Link to="/p/$project/compare" params={{ project }} search={search} {...props} />
      )}
    >
      Compare
    </PermittedLink>
  );
}
