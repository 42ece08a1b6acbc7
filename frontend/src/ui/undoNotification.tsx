import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";

/** Long enough to read the message and to reach the button. */
const SHOWN_MS = 10_000;

/** Shows what happened, with a button that undoes it. */
export function undoable(message: string, undo: () => void): void {
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
