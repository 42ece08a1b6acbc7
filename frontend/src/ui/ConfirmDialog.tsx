import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { FormDialog } from "./FormDialog";

interface ConfirmDialogProps {
  title: string;
  /** Label of the button that acts. */
  submit: string;
  act(): Promise<unknown>;
  /** Called after the act, for example to read lists again and to close the dialog. */
  onDone(): Promise<unknown>;
  onClose(): void;
  /** What the act ends, and what it leaves alone. */
  children: ReactNode;
}

/** Asks before a destructive action, and shows why the server refused the action. */
export function ConfirmDialog({ act, onDone, children, ...frame }: ConfirmDialogProps) {
  const confirm = useMutation({ mutationFn: act, onSuccess: onDone });
  return (
    <FormDialog
      opened
      destructive
      isPending={confirm.isPending}
      problem={confirm.error?.message}
      onSubmit={() => confirm.mutate()}
      {...frame}
    >
      {children}
    </FormDialog>
  );
}
