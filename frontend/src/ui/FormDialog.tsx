import { Button, Modal } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import classes from "./FormDialog.module.css";
import { Refusal } from "./Refusal";

interface FormDialogProps {
  opened: boolean;
  title: string;
  /** Label of the button that sends the form. */
  submit: string;
  isPending: boolean;
  /** What the server refused, unless a field shows it. */
  problem?: string | null | undefined;
  /** Label of the button that sends nothing. */
  leave?: string;
  /** The request destroys something: the button is red. */
  destructive?: boolean;
  /** The button is disabled, for example until a name is typed. */
  incomplete?: boolean;
  size?: string;
  /** The button that sends the form has the focus at first, for a dialog without fields. */
  focusSubmit?: boolean;
  onSubmit(): void;
  onClose(): void;
  children: ReactNode;
}

/** A dialog with a form, which shows why the server refused it. */
export function FormDialog(props: FormDialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!props.isPending && !props.incomplete) props.onSubmit();
  };
  return (
    <Modal
      opened={props.opened}
      onClose={props.onClose}
      title={props.title}
      size={props.size ?? "md"}
    >
      <form className={classes.form} onSubmit={submit}>
        {props.children}
        <Refusal text={props.problem} />
        <div className={classes.buttons}>
          <Button variant="default" onClick={props.onClose}>
            {props.leave ?? "Cancel"}
          </Button>
          <Button
            type="submit"
            loading={props.isPending}
            disabled={props.incomplete ?? false}
            {...(props.focusSubmit ? { "data-autofocus": true } : {})}
            {...(props.destructive ? { color: "red" } : {})}
          >
            {props.submit}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
