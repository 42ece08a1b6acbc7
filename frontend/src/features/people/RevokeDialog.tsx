import { Button, Modal } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { peopleKeys, revokeInvitation } from "@/api/people";
import type { Invitation } from "@/api/types";
import { Refusal } from "@/ui/Refusal";
import { invitedName } from "./invitationColumns";
import classes from "./Person.module.css";

/** Asks before an invitation is revoked. */
export function RevokeDialog({ invitation, onClose }: { invitation: Invitation; onClose(): void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeInvitation(invitation.id),
    onSuccess: onClose,
    onSettled: () => client.invalidateQueries({ queryKey: peopleKeys.invitations }),
  });
  const name = invitedName(invitation);
  return (
    <Modal opened onClose={onClose} title={`Revoke the invitation of ${name}?`}>
      <div className={classes.dialog}>
        <p>The link stops working at once. You can invite {name} again, with a new link.</p>
        <Refusal text={revoke.error?.message} />
        <div className={classes.buttons}>
          <Button variant="default" onClick={onClose} data-autofocus>
            Keep it
          </Button>
          <Button color="red" loading={revoke.isPending} onClick={() => revoke.mutate()}>
            Revoke
          </Button>
        </div>
      </div>
    </Modal>
  );
}
