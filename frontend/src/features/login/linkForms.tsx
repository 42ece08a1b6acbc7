import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type RedemptionChoice, redeem } from "@/api/actions";
import { ApiError } from "@/api/client";
import type { LinkPreview, Session } from "@/api/types";
import { Refusal } from "@/ui/Refusal";
import { LEAST_PASSWORD, refusalOf } from "./forms";
import classes from "./LoginPage.module.css";
import { useLinkProblems } from "./useLinkProblems";

interface LinkFormProps {
  code: string;
  preview: LinkPreview;
  enter: (session: Session) => Promise<void>;
}

/** Shows the roles of an invitation, and asks for login name, display name and password. */
export function InvitationForm({ code, preview, enter }: LinkFormProps) {
  const [user, setUser] = useState(preview.user ?? "");
  const [displayName, setDisplayName] = useState(preview.display_name);
  const [password, setPassword] = useState("");
  const chosen = { user, displayName, password };
  const { faults, form, pending, refusal } = useRedemption(code, chosen, enter);
  return (
    <form className={classes.form} onSubmit={form}>
      <Invited preview={preview} />
      {refusal && <Refusal {...refusalOf(refusal)} />}
      <TextInput
        label="Login name"
        description="Letters, digits and hyphens"
        name="username"
        autoComplete="username"
        autoCapitalize="none"
        size="sm"
        required
        maxLength={64}
        value={user}
        onChange={(event) => setUser(event.currentTarget.value)}
        error={faults["/user"]}
      />
      <TextInput
        label="Display name"
        description="Shown to the others; may be empty"
        autoComplete="name"
        size="sm"
        maxLength={64}
        value={displayName}
        onChange={(event) => setDisplayName(event.currentTarget.value)}
        error={faults["/display_name"]}
      />
      <NewPassword value={password} onChange={setPassword} fault={faults["/password"]} />
      <Button type="submit" size="sm" loading={pending}>
        Join
      </Button>
    </form>
  );
}

function Invited({ preview }: { preview: LinkPreview }) {
  const { invited_by, projects, is_admin } = preview;
  return (
    <div className={classes.step}>
      <p>
        {invited_by === null ? "You are invited" : <b>{invited_by}</b>}
        {invited_by !== null && " invites you"} to this server.
        {is_admin && " You will be an administrator of it."}
      </p>
      {projects.length > 0 && (
        <ul className={classes.roles} aria-label="Your projects">
          {projects.map(({ project_id, name, role }) => (
            <li key={project_id}>
              <b>{name}</b> <span className="muted">as {role}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Sets a new password with the link that an administrator made, and logs in. */
export function NewPasswordForm({ code, preview, enter }: LinkFormProps) {
  const [password, setPassword] = useState("");
  const { faults, form, pending, refusal } = useRedemption(code, { password }, enter);
  return (
    <form className={classes.form} onSubmit={form}>
      <p>
        Choose a new password for <b>{preview.display_name || preview.user}</b>. All other logins of
        this account end.
      </p>
      {refusal && <Refusal {...refusalOf(refusal)} />}
      <input type="hidden" name="username" autoComplete="username" value={preview.user ?? ""} />
      <NewPassword value={password} onChange={setPassword} fault={faults["/password"]} />
      <Button type="submit" size="sm" loading={pending}>
        Set the password
      </Button>
    </form>
  );
}

interface NewPasswordProps {
  value: string;
  onChange(password: string): void;
  /** The server's message about the password. */
  fault: string | undefined;
}

function NewPassword({ value, onChange, fault }: NewPasswordProps) {
  const missing = LEAST_PASSWORD - value.length;
  const description =
    value === "" || missing <= 0
      ? `At least ${LEAST_PASSWORD} characters, hard to guess`
      : `${missing} more ${missing === 1 ? "character" : "characters"}`;
  return (
    <PasswordInput
      label="Password"
      description={description}
      name="new-password"
      autoComplete="new-password"
      size="sm"
      required
      minLength={LEAST_PASSWORD}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={fault}
    />
  );
}

/** Redeems the link when the form is sent; the server checks name and password during typing. */
function useRedemption(code: string, chosen: RedemptionChoice, enter: LinkFormProps["enter"]) {
  const problems = useLinkProblems(code, chosen);
  const attempt = useMutation({ mutationFn: () => redeem(code, chosen), onSuccess: enter });
  const { error } = attempt;
  const isPlaced = error instanceof ApiError && error.errors.length > 0;
  const form = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return {
    form,
    faults: problems,
    pending: attempt.isPending,
    refusal: error && !(isPlaced && Object.keys(problems).length > 0) ? error : null,
  };
}
