import { Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { createServiceAccount } from "@/api/serviceAccounts";
import type { Role } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { useCredentialRefresh } from "./useCredentialRefresh";

const ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer: reads" },
  { value: "member", label: "member: submits, acts on its own runs" },
];

/** Creates a service account. */
export function CreateAccount({ project, onClose }: { project: string; onClose(): void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  const refresh = useCredentialRefresh(project);
  const create = useMutation({
    mutationFn: () => createServiceAccount(project, name.trim(), role),
    onSuccess: async () => {
      await refresh();
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title="New service account"
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === ""}
      problem={findFaultBeside(create.error, ["/name", "/role"])}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens; unlike the names of all users"
        placeholder={`${project}-ci`}
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={findFaultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Select
        label="Role"
        description="No program manages a project, so there is no maintainer here"
        data={ROLES}
        value={role}
        allowDeselect={false}
        error={findFaultAt(create.error, "/role")}
        onChange={(chosen) => chosen && setRole(chosen as Role)}
      />
    </FormDialog>
  );
}
