import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { changePerson, enablePerson, resetPassword, signOutPerson } from "@/api/people";
import type { PersonDetail } from "@/api/types";
import { formatDuration, formatPlural } from "@/lib/format";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { Refusal } from "@/ui/Refusal";
import { DeleteDialog } from "./DeleteDialog";
import { DisableDialog } from "./DisableDialog";
import { OneTimeLink } from "./OneTimeLink";
import classes from "./Person.module.css";
import { usePersonAction } from "./usePersonAction";

interface PersonProps {
  person: PersonDetail;
  /** Whether this is the account of the caller. */
  isCaller: boolean;
}

/** The actions of an administrator on a person, each with the reason of its latest refusal. */
export function AccessPanel(props: PersonProps) {
  return (
    <Panel title="Access" flush>
      <div className={classes.actions}>
        <Administrator {...props} />
        <Password {...props} />
        <SignOut {...props} />
        <Disabling {...props} />
        <Deletion {...props} />
      </div>
    </Panel>
  );
}

interface ActionProps {
  title: string;
  text: ReactNode;
  control: ReactNode;
  children?: ReactNode;
}

function Action({ title, text, control, children }: ActionProps) {
  return (
    <section className={classes.action}>
      <div>
        <h3>{title}</h3>
        <p>{text}</p>
      </div>
      {control}
      {children && <div className={classes.below}>{children}</div>}
    </section>
  );
}

function Administrator({ person, isCaller }: PersonProps) {
  const change = usePersonAction((isAdmin: boolean) =>
    changePerson(person.name, { is_admin: isAdmin }),
  );
  return (
    <Action
      title="Administrator of the server"
      text={
        person.is_admin
          ? `Manages people, projects and pools.${isCaller ? " This is your own account." : ""}`
          : "Administrators manage people, projects and pools; they read projects as members only."
      }
      control={
        <Button
          variant="default"
          loading={change.isPending}
          onClick={() => change.mutate(!person.is_admin)}
        >
          {person.is_admin ? "Remove the right" : "Make administrator"}
        </Button>
      }
    >
      <Refusal text={change.error?.message} />
    </Action>
  );
}

function Password({ person }: PersonProps) {
  const reset = usePersonAction(() => resetPassword(person.name));
  const reason =
    person.state === "disabled" ? `${person.name} is disabled. Enable the account first.` : null;
  return (
    <Action
      title="Password"
      text={
        person.has_password
          ? "A link with which a new password is set; the present one is valid until then."
          : "No password is set: only links log in. A link sets the first password."
      }
      control={
        <Permitted reason={reason}>
          <Button variant="default" loading={reset.isPending} onClick={() => reset.mutate()}>
            Reset password
          </Button>
        </Permitted>
      }
    >
      <Refusal text={reset.error?.message} />
      {reset.data && (
        <OneTimeLink url={reset.data.url}>
          Give this link to {person.display_name || person.name} by a way that others do not read.
          It is shown only now, works once and expires in{" "}
          {formatDuration(reset.data.expires_in_seconds)}.
        </OneTimeLink>
      )}
    </Action>
  );
}

function SignOut({ person, isCaller }: PersonProps) {
  const signOut = usePersonAction(() => signOutPerson(person.name));
  return (
    <Action
      title="Browser logins"
      text={`Signing out ends all logins in browsers${isCaller ? ", yours too" : ""}. Tokens stay.`}
      control={
        <Button variant="default" loading={signOut.isPending} onClick={() => signOut.mutate()}>
          Sign out everywhere
        </Button>
      }
    >
      <Refusal text={signOut.error?.message} />
      {signOut.data && (
        <p role="status">{formatPlural(signOut.data.ended_sessions, "login")} ended.</p>
      )}
    </Action>
  );
}

function Disabling({ person, isCaller }: PersonProps) {
  const [asked, setAsked] = useState(false);
  const enable = usePersonAction(() => enablePerson(person.name));
  if (person.state === "disabled") {
    return (
      <Action
        title="Disabled"
        text="Cannot log in, and tokens are refused. Once enabled, unexpired tokens work again."
        control={
          <Button variant="default" loading={enable.isPending} onClick={() => enable.mutate()}>
            Enable
          </Button>
        }
      >
        <Refusal text={enable.error?.message} />
      </Action>
    );
  }
  return (
    <Action
      title="Disable"
      text="Ends logins, tokens and live pages at once, and can be undone. Running jobs may go on."
      control={
        <Button variant="default" onClick={() => setAsked(true)}>
          Disable…
        </Button>
      }
    >
      {asked && (
        <DisableDialog person={person} isCaller={isCaller} onClose={() => setAsked(false)} />
      )}
    </Action>
  );
}

function Deletion({ person }: PersonProps) {
  const [asked, setAsked] = useState(false);
  return (
    <Action
      title="Delete"
      text="Removes the account for good. Experiments, runs and jobs go to another person."
      control={
        <Button variant="default" c="var(--bad)" onClick={() => setAsked(true)}>
          Delete…
        </Button>
      }
    >
      {asked && <DeleteDialog person={person} onClose={() => setAsked(false)} />}
    </Action>
  );
}
