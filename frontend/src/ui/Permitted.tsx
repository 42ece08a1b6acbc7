import { Tooltip } from "@mantine/core";
import { cloneElement, type MouseEvent, type ReactElement } from "react";

interface Control {
  onClick?: ((event: MouseEvent<HTMLButtonElement>) => void) | undefined;
  "aria-disabled"?: boolean;
  "data-disabled"?: boolean;
}

interface PermittedProps {
  /** Why the user may not use the control; `null` if it may be used. */
  reason: string | null;
  /** A button or an item of a menu. */
  children: ReactElement<Control>;
}

/** Shows a control as disabled, with the reason as its tooltip, to those who may not use it. */
export function Permitted({ reason, children }: PermittedProps) {
  if (reason === null) return children;
  // A control with the attribute `disabled` would neither be focused nor show a tooltip.
  return (
    <Tooltip label={reason} multiline maw={280}>
      {cloneElement(children, {
        "aria-disabled": true,
        "data-disabled": true,
        onClick: (event) => event.preventDefault(),
      })}
    </Tooltip>
  );
}
