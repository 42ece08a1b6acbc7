import { Select } from "@mantine/core";
import { useState } from "react";
import { findFaultAt } from "@/api/client";
import { createToken } from "@/api/serviceAccounts";
import type { Scope, Session, Token } from "@/api/types";
import { TokenForm } from "./TokenForm";
import { useCredentialRefresh } from "./useCredentialRefresh";

const ALL = "";
const SCOPES: [Scope, string][] = [
  ["read", "reads experiments, runs, jobs, curves and files"],
  ["submit", "submits, and pauses, cancels and retries what your role permits"],
  ["admin", "everything that your roles permit, your account and tokens included"],
];

interface CreateOwnTokenProps {
  projects: Session["projects"];
  onClose(): void;
  onCreated(token: Token): void;
}

/** Creates a token of the caller. */
export function CreateOwnToken({ projects, onClose, onCreated }: CreateOwnTokenProps) {
  const [project, setProject] = useState(ALL);
  const refresh = useCredentialRefresh();
  return (
    <TokenForm
      title="New token"
      placeholder="laptop"
      bound="your roles are the other bound"
      choices={SCOPES.map(([scope, permits]) => ({ scope, label: `${scope}: ${permits}` }))}
      chosen={["read", "submit"]}
      create={({ expires_in_days, ...token }) =>
        createToken({ ...token, project: project === ALL ? null : project, expires_in_days })
      }
      onCreated={(token) => {
        onClose();
        onCreated(token);
        return refresh();
      }}
      onClose={onClose}
    >
      {(error) => (
        <Select
          label="Projects"
          data={[
            { value: ALL, label: "all of yours, also those that you join later" },
            ...projects.map(({ slug }) => ({ value: slug, label: slug })),
          ]}
          value={project}
          allowDeselect={false}
          error={findFaultAt(error, "/project")}
          onChange={(chosen) => setProject(chosen ?? ALL)}
        />
      )}
    </TokenForm>
  );
}
