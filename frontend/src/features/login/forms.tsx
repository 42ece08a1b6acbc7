import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { login, redeem } from "@/api/actions";
import { ApiError } from "@/api/client";
import type { Session } from "@/api/types";
import { readRememberedUser } from "@/lib/lastUser";
import { CodeBlock } from "@/ui/Copy";
import { Refusal } from "@/ui/Refusal";
import { readCode } from "./code";
import classes from "./LoginPage.module.css";

export const LEAST_PASSWORD = 12;

interface FormProps {
  enter: (session: Session) => Promise<void>;
}

export function PasswordForm({ enter }: FormProps) {
  const [user, setUser] = useState(readRememberedUser);
  const [password, setPassword] = useState("");
  return (
    <EntryForm ask={() => login(user, password)} enter={enter}>
      <TextInput
        label="User name"
        name="user"
        autoComplete="username"
        size="sm"
        required
        value={user}
        onChange={(e) => setUser(e.currentTarget.value)}
      />
      <PasswordInput
        label="Password"
        name="password"
        autoComplete="current-password"
        size="sm"
        required
        data-autofocus
        value={password}
        onChange={(e) => setPassword(e.currentTarget.value)}
      />
    </EntryForm>
  );
}

/** Explains how to create a login link and how to set a password, and reads a link. */
export function LinkForm({ enter, open }: FormProps & { open: (code: string) => void }) {
  const [link, setLink] = useState("");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  return (
    <>
      <div className={classes.step}>
        <p>
          On the server's machine, in the directory where it was started, this command prints a link
          that logs in once:
        </p>
        <CodeBlock text="palestra login-link" />
        <p className="muted">
          In another directory add <code>--data-dir DIR</code>; for a user other than the first
          administrator add <code>--user NAME</code>. You do not administer the server? An
          administrator can send you a link.
        </p>
      </div>
      <EntryForm
        ask={async () => {
          if (user || password) return redeem(readCode(link), { user, password });
          open(readCode(link));
          return null;
        }}
        enter={enter}
      >
        <TextInput
          label="Login link"
          description="Open it in this browser, or paste it here"
          placeholder="http://…/login#code=…"
          name="code"
          autoComplete="one-time-code"
          size="sm"
          required
          value={link}
          onChange={(e) => setLink(e.currentTarget.value)}
        />
        <details className={classes.more}>
          <summary>Set a password for the next time</summary>
          <TextInput
            label="User name"
            description="Unchanged if empty"
            size="sm"
            autoComplete="username"
            value={user}
            onChange={(e) => setUser(e.currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description={`At least ${LEAST_PASSWORD} characters`}
            autoComplete="new-password"
            size="sm"
            minLength={LEAST_PASSWORD}
            value={password}
            onChange={(e) => setPassword(e.currentTarget.value)}
          />
        </details>
      </EntryForm>
    </>
  );
}

function EntryForm({
  ask,
  enter,
  children,
}: FormProps & { ask: () => Promise<Session | null>; children: ReactNode }) {
  const attempt = useMutation({
    mutationFn: ask,
    onSuccess: async (session) => {
      if (session !== null) await enter(session);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      {attempt.isError && <Refusal {...refusalOf(attempt.error)} />}
      {children}
      <Button type="submit" size="sm" loading={attempt.isPending}>
        Log in
      </Button>
    </form>
  );
}

/** The message and the request's ID of an error, as properties of `Refusal`. */
export function refusalOf(error: Error) {
  return {
    text: error.message,
    requestId: error instanceof ApiError ? error.requestId : null,
  };
}
