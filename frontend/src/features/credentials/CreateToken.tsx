import { createServiceToken } from "@/api/serviceAccounts";
import type { ServiceAccount, Token } from "@/api/types";
import { TokenForm } from "./TokenForm";
import { useCredentialRefresh } from "./useCredentialRefresh";

interface CreateTokenProps {
  project: string;
  account: ServiceAccount;
  onClose(): void;
  onCreated(token: Token): void;
}

/** Creates a token of a service account. */
export function CreateToken({ project, account, onClose, onCreated }: CreateTokenProps) {
  const isMember = account.role !== "viewer";
  const refresh = useCredentialRefresh(project);
  return (
    <TokenForm
      title={`New token of ${account.name}`}
      placeholder="nightly pipeline"
      bound="the account's role is the other bound"
      choices={[
        { scope: "read", label: "read: experiments, runs, curves and files" },
        {
          scope: "submit",
          disabled: !isMember,
          label: isMember
            ? "submit: experiments and jobs, and act on what it submitted"
            : "submit: a viewer submits nothing",
        },
      ]}
      chosen={isMember ? ["read", "submit"] : ["read"]}
      create={(token) => createServiceToken(project, account.name, token)}
      onCreated={(token) => {
        onClose();
        onCreated(token);
        return refresh();
      }}
      onClose={onClose}
    />
  );
}
