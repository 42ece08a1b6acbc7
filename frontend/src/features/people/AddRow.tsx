import { Button } from "@mantine/core";
import { IconPlus } from "@/ui/icons";

/** A button that adds a row to a list of fields. */
export function AddRow({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-xs"
      w="fit-content"
      leftSection={<IconPlus size={13} />}
      onClick={onClick}
    >
      {label}
    </Button>
  );
}
