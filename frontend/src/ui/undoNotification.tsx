import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";

/** Says what happened, with a way back. */
export function undoable(message: string, undo: () => void): void {
  const id = notifications.show({
    withBorder: true,
    message: (
      <div className="row" style={{ justifyContent: "space-between" }}>
        <span>{message}</span>
        <Button
          variant="subtle"
          size="compact-xs"
          onClick={() => {
            notifications.hide(id);
            undo();
          }}
        >
          Undo
        </Button>
      </div>
    ),
  });
}
