import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";

/** Time in which the message can be read and the button reached, in milliseconds. */
const SHOWN_MS = 10_000;

/** Shows a message about an action, with a button that undoes the action. */
export function showUndo(message: string, undo: () => void): void {
  const id = notifications.show({
    withBorder: true,
    autoClose: SHOWN_MS,
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
