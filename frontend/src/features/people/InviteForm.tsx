import { Button, Checkbox, Select } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { invite, peopleKeys } from "@/api/people";
import type { Invitation } from "@/api/types";
import { Panel } from "@/ui/Page";
import { Refusal } from "@/ui/Refusal";
import classes from "./Invitations.module.css";
import { InviteeFields } from "./InviteeFields";
import { buildInviteRequest, createPerson, createRole, type InviteDraft } from "./inviteDraft";
import { findFaults } from "./ProfileForm";
import { RoleFields } from "./RoleFields";

const LIFETIMES = [
  { value: "24", label: "1 day" },
  { value: "72", label: "3 days" },
  { value: "168", label: "7 days" },
  { value: "720", label: "30 days" },
];

interface InviteFormProps {
  onClose(): void;
  onMade(invitations: Invitation[]): void;
}

/** Invites one or several people, who get the same roles. */
export function InviteForm({ onClose, onMade }: InviteFormProps) {
  const client = useQueryClient();
  const [draft, setDraft] = useState<InviteDraft>(() => ({
    people: [createPerson()],
    roles: [createRole()],
    isAdmin: false,
    hours: 168,
  }));
  const change = (part: Partial<InviteDraft>) => setDraft((before) => ({ ...before, ...part }));
  const send = useMutation({
    mutationFn: () => invite(buildInviteRequest(draft)),
    onSuccess: async (made) => {
      onMade(made);
      await client.invalidateQueries({ queryKey: peopleKeys.invitations });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send.mutate();
  };
  const faults = findFaults(send.error);
  return (
    <Panel title="Invite people">
      <form className={classes.form} onSubmit={submit}>
        <InviteeFields
          people={draft.people}
          faults={faults}
          onChange={(people) => change({ people })}
        />
        <RoleFields roles={draft.roles} faults={faults} onChange={(roles) => change({ roles })} />
        <Checkbox
          size="xs"
          label="Administrator of the server"
          description="Manages people, projects and pools; not needed to work in a project"
          checked={draft.isAdmin}
          onChange={(event) => change({ isAdmin: event.currentTarget.checked })}
        />
        <Select
          label="The links expire after"
          data={LIFETIMES}
          value={String(draft.hours)}
          onChange={(hours) => change({ hours: Number(hours) })}
          allowDeselect={false}
          w={160}
        />
        <Refusal text={send.error?.message} />
        <div className={classes.buttons}>
          <Button type="submit" loading={send.isPending}>
            {draft.people.length === 1 ? "Make the link" : `Make ${draft.people.length} links`}
          </Button>
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
        </div>
      </form>
    </Panel>
  );
}
