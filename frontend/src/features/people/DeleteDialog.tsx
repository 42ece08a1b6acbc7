import { Button, Modal, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { deletePerson } from "@/api/people";
import type { PersonDeleted, PersonDetail } from "@/api/types";
import { Refusal } from "@/ui/Refusal";
import { listOwnedParts } from "./owned";
import classes from "./Person.module.css";
import { PersonSelect } from "./PersonSelect";
import { usePersonAction } from "./usePersonAction";

/** Asks before a person is deleted: lists what is kept, and asks who gets the person's objects. */
export function DeleteDialog({ person, onClose }: { person: PersonDetail; onClose(): void }) {
  const navigate = useNavigate();
  const [receiver, setReceiver] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const owned = listOwnedParts(person.owned);
  const remove = usePersonAction(
    () => deletePerson(person.name, receiver),
    (done) => {
      notifications.show({ message: describeDeletion(person.name, done) });
      void navigate({ to: "/admin/people", search: {} });
    },
  );
  const isReady = typed === person.name && (owned.length === 0 || receiver !== null);
  return (
    <Modal opened onClose={onClose} title={`Delete ${person.name}?`} size="lg">
      <div className={classes.dialog}>
        <ul>
          <li>
            The account is removed with its password, logins, tokens and roles in projects. This
            cannot be undone; to lock somebody out, disabling is enough.
          </li>
          <li>
            {owned.length === 0
              ? `${person.name} owns nothing that would have to be transferred.`
              : `Kept, and given to the person chosen below: ${owned.join(", ")}. Jobs go on.`}
          </li>
          <li>The audit log keeps what {person.name} did.</li>
        </ul>
        {owned.length > 0 && (
          <PersonSelect
            label="Transfer to"
            except={person.name}
            value={receiver}
            onChange={setReceiver}
          />
        )}
        <TextInput
          label={
            <>
              Type <code>{person.name}</code> to confirm
            </>
          }
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Refusal text={remove.error?.message} />
        <div className={classes.buttons}>
          <Button variant="default" onClick={onClose} data-autofocus>
            Keep the account
          </Button>
          <Button
            color="red"
            disabled={!isReady}
            loading={remove.isPending}
            onClick={() => remove.mutate()}
          >
            Delete
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function describeDeletion(name: string, { transferred, transferred_to }: PersonDeleted): string {
  const moved = Object.entries(transferred)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${number} ${kind.replaceAll("_", " ")}`);
  return moved.length === 0 || transferred_to === null
    ? `${name} is deleted.`
    : `${name} is deleted; ${transferred_to} got ${moved.join(", ")}.`;
}
