import { Button, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useEffect, useState } from "react";
import { ApiError } from "@/api/client";
import { changePerson } from "@/api/people";
import type { PersonChange, PersonDetail } from "@/api/types";
import { Panel } from "@/ui/Page";
import { Refusal } from "@/ui/Refusal";
import classes from "./Person.module.css";
import { usePersonAction } from "./usePersonAction";

/** Changes display name and e-mail address. */
export function ProfileForm({ person }: { person: PersonDetail }) {
  const [displayName, setDisplayName] = useState(person.display_name);
  const [email, setEmail] = useState(person.email ?? "");
  useEffect(() => setDisplayName(person.display_name), [person.display_name]);
  useEffect(() => setEmail(person.email ?? ""), [person.email]);
  const save = usePersonAction(
    (change: PersonChange) => changePerson(person.name, change),
    () => notifications.show({ message: "Saved" }),
  );
  const isChanged = displayName !== person.display_name || email !== (person.email ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ display_name: displayName.trim() || null, email: email.trim() || null });
  };
  const faults = findFaults(save.error);
  const isPlaced = Object.keys(faults).length > 0;
  return (
    <Panel title="Profile">
      <form className={classes.form} onSubmit={submit}>
        <TextInput
          label="Display name"
          description="Shown instead of the login name"
          maxLength={64}
          value={displayName}
          onChange={(event) => setDisplayName(event.currentTarget.value)}
          error={faults["/display_name"]}
        />
        <TextInput
          label="E-mail address"
          inputMode="email"
          autoComplete="off"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={faults["/email"]}
        />
        {!isPlaced && <Refusal text={save.error?.message} />}
        <Button type="submit" disabled={!isChanged} loading={save.isPending} w="fit-content">
          Save
        </Button>
      </form>
    </Panel>
  );
}

/** The server's messages by the JSON pointer to their field. */
export function findFaults(error: Error | null): Record<string, string> {
  if (!(error instanceof ApiError)) return {};
  return Object.fromEntries(error.errors.map(({ pointer, message }) => [pointer, message]));
}
