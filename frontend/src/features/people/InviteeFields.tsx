import { ActionIcon, TextInput } from "@mantine/core";
import { IconX } from "@/ui/icons";
import { AddRow } from "./AddRow";
import classes from "./Invitations.module.css";
import { createPerson, normaliseLoginName, type PersonDraft } from "./inviteDraft";

const MOST = 50;

interface InviteeFieldsProps {
  people: readonly PersonDraft[];
  /** The server's sentences by pointer. */
  faults: Record<string, string>;
  onChange(people: PersonDraft[]): void;
}

/** A row of fields for each invited person. */
export function InviteeFields({ people, faults, onChange }: InviteeFieldsProps) {
  const change = (key: number, part: Partial<PersonDraft>) =>
    onChange(people.map((one) => (one.key === key ? { ...one, ...part } : one)));
  return (
    <div className={classes.people}>
      {people.map((one, i) => (
        <div className={classes.person} key={one.key}>
          <TextInput
            label="Login name"
            placeholder="chosen by the person"
            maxLength={64}
            autoComplete="off"
            value={one.name}
            onChange={(event) =>
              change(one.key, { name: normaliseLoginName(event.currentTarget.value) })
            }
            error={faults[`/invitations/${i}/name`]}
          />
          <TextInput
            label="Display name"
            placeholder="optional"
            maxLength={64}
            autoComplete="off"
            value={one.displayName}
            onChange={(event) => change(one.key, { displayName: event.currentTarget.value })}
            error={faults[`/invitations/${i}/display_name`]}
          />
          <TextInput
            label="E-mail address"
            placeholder="optional"
            inputMode="email"
            autoComplete="off"
            value={one.email}
            onChange={(event) => change(one.key, { email: event.currentTarget.value })}
            error={faults[`/invitations/${i}/email`]}
          />
          <ActionIcon
            aria-label={`Remove person ${i + 1}`}
            disabled={people.length === 1}
            onClick={() => onChange(people.filter(({ key }) => key !== one.key))}
          >
            <IconX size={14} />
          </ActionIcon>
        </div>
      ))}
      {people.length < MOST && (
        <AddRow label="Another person" onClick={() => onChange([...people, createPerson()])} />
      )}
    </div>
  );
}
