import { Checkbox, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { faultAt, faultBeside } from "@/api/client";
import { createToken } from "@/api/serviceAccounts";
import type { Scope, Session, Token } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { LIVES } from "./lives";
import { useCredentialRefresh } from "./useCredentialRefresh";

const FIELDS = ["/name", "/scopes", "/project", "/expires_in_days"];
const ALL = "";
const SCOPES: [Scope, string][] = [
  ["read", "reads experiments, runs, jobs, curves and files"],
  ["submit", "submits, and pauses, cancels and retries what your role permits"],
  ["admin", "everything that your roles permit, your account and tokens included"],
  ["worker", "enrols workers of one project, and nothing else"],
];

interface CreateOwnTokenProps {
  projects: Session["projects"];
  onClose(): void;
  onCreated(token: Token): void;
}

/** Makes a token of the caller. */
export function CreateOwnToken({ projects, onClose, onCreated }: CreateOwnTokenProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read", "submit"]);
  const [project, setProject] = useState(ALL);
  const [days, setDays] = useState("90");
  const enrolling = usePermission("server.pools");
  const refresh = useCredentialRefresh();
  const create = useMutation({
    mutationFn: () =>
      createToken({
        name,
        scopes,
        project: project === ALL ? null : project,
        expires_in_days: Number(days),
      }),
    onSuccess: async (token) => {
      onClose();
      onCreated(token);
      await refresh();
    },
  });
  return (
    <FormDialog
      opened
      title="New token"
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
        placeholder="laptop"
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={faultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Checkbox.Group
        label="Scopes"
        description="What the token may do at most; your roles are the other bound"
        value={scopes}
        error={faultAt(create.error, "/scopes")}
        onChange={(chosen) => setScopes(chosen as Scope[])}
      >
        {SCOPES.map(([scope, permits]) => {
          const isRefused = scope === "worker" && !enrolling.allowed;
          return (
            <Checkbox
              key={scope}
              mt={8}
              value={scope}
              disabled={isRefused}
              label={`${scope}: ${isRefused ? "only for administrators of the server" : permits}`}
            />
          );
        })}
      </Checkbox.Group>
      <Select
        label="Projects"
        data={[
          { value: ALL, label: "all of yours, also those that you join later" },
          ...projects.map(({ slug }) => ({ value: slug, label: slug })),
        ]}
        value={project}
        allowDeselect={false}
        error={faultAt(create.error, "/project")}
        onChange={(chosen) => setProject(chosen ?? ALL)}
      />
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
