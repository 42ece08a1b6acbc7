import { Button, type ButtonProps } from "@mantine/core";
import type { ReactElement } from "react";
import { Permitted } from "./Permitted";

interface PermittedLinkProps extends Pick<ButtonProps, "leftSection" | "size" | "variant"> {
  /** Why the link leads nowhere for now; `null` if it does. */
  reason: string | null;
  /** Renders the link with the properties that make it look like a button. */
  link(props: Record<string, unknown>): ReactElement;
  children: string;
}

/** A link that looks like a button: a disabled button with the reason where it may not be used. */
export function PermittedLink({ reason, link, ...button }: PermittedLinkProps) {
  if (reason === null) return <Button {...button} renderRoot={link} />;
  return (
    <Permitted reason={reason}>
      <Button {...button} />
    </Permitted>
  );
}
