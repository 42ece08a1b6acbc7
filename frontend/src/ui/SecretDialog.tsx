import { Button, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { CodeBlock } from "./Copy";
import classes from "./FormDialog.module.css";

const COPY = "Copy the secret now: it is shown once, and the server keeps only its hash.";

interface SecretDialogProps {
  title: string;
  /** `null` while the dialog is closed. */
  secret: string | null;
  /** What to do with it; by default to copy it. */
  intro?: string;
  onClose(): void;
  /** How to use the secret. */
  children?: ReactNode;
}

/** Shows a secret once; a click beside the dialog does not close it. */
export function SecretDialog({ title, secret, intro, onClose, children }: SecretDialogProps) {
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      // The first control is then the one that copies, which gets the focus.
      withCloseButton={false}
    >
      <div className={classes.form}>
        <p>{intro ?? COPY}</p>
        <CodeBlock text={secret ?? ""} label="Secret" />
        {children}
        <div className={classes.buttons}>
          <Button onClick={onClose}>I have copied it</Button>
        </div>
      </div>
    </Modal>
  );
}
