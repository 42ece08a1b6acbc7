import { Button, PasswordInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { accountKeys, setPassword } from "@/api/account";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { keys } from "@/api/queries";
import type { Account } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { Panel } from "@/ui/Page";
import { Refusal } from "@/ui/Refusal";
import classes from "./Account.module.css";

const LEAST = 12;
const FIELDS = ["/current_password", "/password"];

/** Sets the first password, or replaces the current one. */
export function PasswordPanel({ account }: { account: Account }) {
  const [current, setCurrent] = useState("");
  const [fresh, setFresh] = useState("");
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => setPassword(fresh, account.current_password_needed ? current : null),
    onSuccess: ({ ended_sessions: ended }) => {
      setCurrent("");
      setFresh("");
      const others = ended > 0 ? ` ${formatPlural(ended, "other login")} ended.` : "";
      notifications.show({ message: `Your password is set.${others}` });
      return Promise.all([
        client.invalidateQueries({ queryKey: accountKeys.account }),
        client.invalidateQueries({ queryKey: keys.loginOptions }),
      ]);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate();
  };
  const verb = account.has_password ? "Change password" : "Set password";
  return (
    <Panel title="Password" aside={<span>{account.has_password ? "set" : "not set"}</span>}>
      <form className={classes.form} onSubmit={submit}>
        <p className="muted">{hintFor(account)}</p>
        <input type="text" autoComplete="username" value={account.name} readOnly hidden />
        {account.current_password_needed && (
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            required
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
            error={findFaultAt(change.error, "/current_password")}
          />
        )}
        <PasswordInput
          label="New password"
          description={`At least ${LEAST} characters; four words that have nothing to do with each other are good`}
          autoComplete="new-password"
          required
          minLength={LEAST}
          value={fresh}
          onChange={(event) => setFresh(event.currentTarget.value)}
          error={findFaultAt(change.error, "/password")}
        />
        <Refusal text={findFaultBeside(change.error, FIELDS)} />
        <Button type="submit" loading={change.isPending} disabled={fresh === ""}>
          {verb}
        </Button>
      </form>
    </Panel>
  );
}

function hintFor(account: Account): string {
  if (!account.has_password)
    return "You log in by one-time links. With a password you can log in without a terminal.";
  return account.current_password_needed
    ? "A change ends your other browser logins and all login links. API tokens stay valid."
    : "You have just logged in by a link, so the current password is not needed. Other browser logins and login links end; API tokens stay valid.";
}
