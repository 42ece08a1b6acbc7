import { Checkbox, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { faultAt, faultBeside } from "@/api/client";
import { createServiceToken } from "@/api/serviceAccounts";
import type { Scope, ServiceAccount, Token } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { LIVES } from "./lives";
import { useCredentialRefresh } from "./useCredentialRefresh";

const FIELDS = ["/name", "/scopes", "/expires_in_days"];

interface CreateTokenProps {
  project: string;
  account: ServiceAccount;
  onClose(): void;
  onCreated(token: Token): void;
}

/** Makes a token of a service account. */
export function CreateToken({ project, account, onClose, onCreated }: CreateTokenProps) {
  const isMember = account.role !== "viewer";
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(isMember ? ["read", "submit"] : ["read"]);
  const [days, setDays] = useState("90");
  const refresh = useCredentialRefresh(project);
  const create = useMutation({
    mutationFn: () =>
      createServiceToken(project, account.name, { name, scopes, expires_in_days: Number(days) }),
    onSuccess: async (token) => {
      onClose();
      onCreated(token);
      await refresh();
    },
  });
  return (
    <FormDialog
      opened
      title={`New token of ${account.name}`}
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === "" || scopes.length === 0}
      problem={faultBeside(create.error, FIELDS)}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Where the token is used, so that it is recognised later"
        placeholder="nightly pipeline"
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={faultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Checkbox.Group
        label="Scopes"
        description="What the token may do at most; the account's role is the other bound"
        value={scopes}
        error={faultAt(create.error, "/scopes")}
        onChange={(chosen) => setScopes(chosen as Scope[])}
      >
        <Checkbox mt={8} value="read" label="read: experiments, runs, curves and files" />
        <Checkbox
          mt={6}
          value="submit"
          disabled={!isMember}
          label={
            isMember
              ? "submit: experiments and jobs, and act on what it submitted"
              : "submit: a viewer submits nothing"
          }
        />
      </Checkbox.Group>
      <Select
        label="Ends after"
        data={LIVES}
        value={days}
        allowDeselect={false}
        error={faultAt(create.error, "/expires_in_days")}
        onChange={(chosen) => chosen && setDays(chosen)}
      />
    </FormDialog>
  );
}
