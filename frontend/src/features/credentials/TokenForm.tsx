import { Checkbox, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import type { Scope, Token } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { LIFETIMES } from "./lifetimes";

const FIELDS = ["/name", "/scopes", "/expires_in_days"];

/** The members of a new token: name, scopes and lifetime. */
export interface NewToken {
  name: string;
  scopes: Scope[];
  expires_in_days: number;
}

export interface ScopeChoice {
  scope: Scope;
  label: string;
  disabled?: boolean;
}

interface TokenFormProps {
  title: string;
  /** An example of a name. */
  placeholder: string;
  /** What bounds the token beside its scopes. */
  bound: string;
  choices: ScopeChoice[];
  chosen: Scope[];
  create(token: NewToken): Promise<Token>;
  onCreated(token: Token): Promise<unknown>;
  onClose(): void;
  /** The field of the project, where the token has one. */
  children?: (error: Error | null) => ReactNode;
}

/** A dialog that creates a token with a name, scopes and a lifetime. */
export function TokenForm(props: TokenFormProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(props.chosen);
  const [days, setDays] = useState("90");
  const create = useMutation({
    mutationFn: () => props.create({ name, scopes, expires_in_days: Number(days) }),
    onSuccess: props.onCreated,
  });
  return (
    <FormDialog
      opened
      title={props.title}
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === "" || scopes.length === 0}
      problem={findFaultBeside(create.error, props.children ? [...FIELDS, "/project"] : FIELDS)}
      onSubmit={() => create.mutate()}
      onClose={props.onClose}
    >
      <TextInput
        label="Name"
        description="Where the token is used, so that it is recognised later"
        placeholder={props.placeholder}
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={findFaultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Checkbox.Group
        label="Scopes"
        description={`What the token may do at most; ${props.bound}`}
        value={scopes}
        error={findFaultAt(create.error, "/scopes")}
        onChange={(chosen) => setScopes(chosen as Scope[])}
      >
        {props.choices.map(({ scope, label, disabled = false }) => (
          <Checkbox key={scope} mt={8} value={scope} disabled={disabled} label={label} />
        ))}
      </Checkbox.Group>
      {props.children?.(create.error)}
      <Select
        label="Ends after"
        data={LIFETIMES}
        value={days}
        allowDeselect={false}
        error={findFaultAt(create.error, "/expires_in_days")}
        onChange={(chosen) => chosen && setDays(chosen)}
      />
    </FormDialog>
  );
}
