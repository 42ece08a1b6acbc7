import { Alert, Button, PasswordInput, SegmentedControl, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { login, redeem } from "@/api/actions";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";
import type { Session } from "@/api/types";
import { CodeBlock } from "@/ui/Bits";
import { Mark } from "@/ui/Mark";
import classes from "./LoginPage.module.css";

const route = getRouteApi("/login");
const LEAST_PASSWORD = 12;

/** Takes the code out of the address, so that it stays in no history. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (code !== null) window.history.replaceState(null, "", window.location.pathname + window.location.search);
  return code;
}

function useEnter() {
  const client = useQueryClient();
  const router = useRouter();
  const { to } = route.useSearch();
  return async (session: Session) => {
    client.setQueryData(keys.session, session);
    await router.navigate({ href: to?.startsWith("/") && !to.startsWith("//") ? to : "/experiments", replace: true });
  };
}

export function LoginPage() {
  const [code] = useState(takeCode);
  const [way, setWay] = useState("password");
  const enter = useEnter();
  const link = useMutation({ mutationFn: (one: string) => redeem(one), onSuccess: enter });
  const { mutate } = link;
  const asked = useRef(false);
  useEffect(() => {
    document.title = "Log in · Palestra";
    if (code === null || asked.current) return;
    asked.current = true;
    mutate(code);
  }, [code, mutate]);
  return (
    <main className={classes.page} id="main">
      <div className={classes.card}>
        <div className={classes.brand}>
          <Mark size={34} />
          <div>
            <h1>Palestra</h1>
            <p className="muted">where agents train</p>
          </div>
        </div>
        <div className={classes.meander} aria-hidden="true" />
        {link.isPending && <p className="muted">Redeeming the one-time link…</p>}
        {link.isError && <Refusal error={link.error} title="This link does not work any more" />}
        <SegmentedControl
          fullWidth
          value={way}
          onChange={setWay}
          aria-label="How to log in"
          data={[
            { value: "password", label: "Password" },
            { value: "code", label: "One-time code" },
          ]}
        />
        {way === "password" ? <PasswordForm enter={enter} /> : <CodeForm enter={enter} />}
        <div className={classes.hint}>
          <p className="muted">No login yet? On the server's machine, this prints a link that works once:</p>
          <CodeBlock text="palestra login-link" />
        </div>
      </div>
    </main>
  );
}

interface FormProps {
  enter: (session: Session) => Promise<void>;
}

function PasswordForm({ enter }: FormProps) {
  const [user, setUser] = useState("admin");
  const [password, setPassword] = useState("");
  return (
    <EntryForm ask={() => login(user, password)} enter={enter}>
      <TextInput
        label="User"
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

function CodeForm({ enter }: FormProps) {
  const [code, setCode] = useState("");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  return (
    <EntryForm ask={() => redeem(code.trim(), user, password)} enter={enter}>
      <TextInput
        label="Code"
        description="The part of the link after #code="
        name="code"
        autoComplete="one-time-code"
        size="sm"
        required
        value={code}
        onChange={(e) => setCode(e.currentTarget.value)}
      />
      <TextInput
        label="User name (optional)"
        size="sm"
        autoComplete="username"
        value={user}
        onChange={(e) => setUser(e.currentTarget.value)}
      />
      <PasswordInput
        label="New password (optional)"
        description={`At least ${LEAST_PASSWORD} characters. Without one, each login needs a new link.`}
        autoComplete="new-password"
        size="sm"
        minLength={LEAST_PASSWORD}
        value={password}
        onChange={(e) => setPassword(e.currentTarget.value)}
      />
    </EntryForm>
  );
}

function EntryForm({ ask, enter, children }: FormProps & { ask: () => Promise<Session>; children: ReactNode }) {
  const attempt = useMutation({ mutationFn: ask, onSuccess: enter });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      {attempt.isError && <Refusal error={attempt.error} />}
      {children}
      <Button type="submit" size="sm" loading={attempt.isPending}>
        Log in
      </Button>
    </form>
  );
}

function Refusal({ error, title }: { error: Error; title?: string }) {
  return (
    <Alert color="red" variant="light" title={title} p="sm">
      {error.message}
      {error instanceof ApiError && error.requestId && (
        <div className="faint">
          request <code>{error.requestId}</code>
        </div>
      )}
    </Alert>
  );
}
