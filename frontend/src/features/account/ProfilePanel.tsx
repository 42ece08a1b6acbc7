import { Button, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { accountKeys, changeAccount } from "@/api/account";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { keys } from "@/api/queries";
import type { Account } from "@/api/types";
import { Panel } from "@/ui/Page";
import { Refusal } from "@/ui/Refusal";
import classes from "./Account.module.css";

const FIELDS = ["/display_name", "/email"];

/** Changes the caller's display name and e-mail address. */
export function ProfilePanel({ account }: { account: Account }) {
  const [name, setName] = useState(account.display_name);
  const [email, setEmail] = useState(account.email ?? "");
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: () =>
      changeAccount({ display_name: name.trim() || null, email: email.trim() || null }),
    onSuccess: (changed) => {
      setName(changed.display_name);
      setEmail(changed.email ?? "");
      client.setQueryData(accountKeys.account, changed);
      notifications.show({ message: "Your profile is saved." });
      return client.invalidateQueries({ queryKey: keys.session });
    },
  });
  const isChanged = name !== account.display_name || email !== (account.email ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Panel title="Profile">
      <form className={classes.form} onSubmit={submit} noValidate>
        <TextInput
          label="Display name"
          description={`Shown beside your login name, ${account.name}; any letters`}
          autoComplete="name"
          maxLength={64}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={findFaultAt(save.error, "/display_name")}
        />
        <TextInput
          label="E-mail address"
          description="Optional; administrators see it"
          type="email"
          autoComplete="email"
          maxLength={254}
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={findFaultAt(save.error, "/email")}
        />
        <Refusal text={findFaultBeside(save.error, FIELDS)} />
        <Button type="submit" loading={save.isPending} disabled={!isChanged}>
          Save
        </Button>
      </form>
    </Panel>
  );
}
