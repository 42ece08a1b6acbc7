import { Button, type ButtonProps } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ComparedSearch } from "@/lib/compare";
import { IconColumns } from "./icons";
import { Permitted } from "./Permitted";

interface CompareLinkProps extends Pick<ButtonProps, "size"> {
  project: string;
  search: ComparedSearch;
  /** Why they cannot be compared; `null` if they can. */
  reason: string | null;
}

/** A button that leads to the comparison of runs or experiments. */
export function CompareLink({ project, search, reason, size }: CompareLinkProps) {
  const look = {
    variant: "default",
    leftSection: <IconColumns size={15} />,
    ...(size === undefined ? {} : { size }),
  } as const;
  if (reason !== null)
    return (
      <Permitted reason={reason}>
        <Button {...look}>Compare</Button>
      </Permitted>
    );
  return (
    <Button
      {...look}
      renderRoot={(props) => (
        <Link to="/p/$project/compare" params={{ project }} search={search} {...props} />
      )}
    >
      Compare
    </Button>
  );
}
