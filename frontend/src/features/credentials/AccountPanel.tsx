import { ActionIcon, Button, Menu } from "@mantine/core";
import { useMemo, useState } from "react";
import { deleteServiceAccount } from "@/api/serviceAccounts";
import type { ServiceAccount, Token } from "@/api/types";
import { formatAge, formatMoment, formatPlural } from "@/lib/format";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { DataTable } from "@/ui/DataTable";
import { IconDots, IconPlus, IconTrash } from "@/ui/icons";
import { ListFrame, type LoadedQuery } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { CreateToken } from "./CreateToken";
import classes from "./Credentials.module.css";
import { RevokeToken } from "./RevokeToken";
import { RotateToken } from "./RotateToken";
import { isValid, tokenColumns } from "./tokenColumns";
import { useCredentialRefresh } from "./useCredentialRefresh";

interface AccountPanelProps {
  project: string;
  account: ServiceAccount;
  query: LoadedQuery;
  /** Tokens of the account, the ended ones included. */
  tokens: readonly Token[];
  /** Shows the secret of a new or rotated token. */
  onSecret(token: Token): void;
}

type Dialog = { kind: "create" } | { kind: "delete" } | { kind: "rotate" | "revoke"; of: Token };

/** A service account with its tokens. */
export function AccountPanel({ project, account, query, tokens, onSecret }: AccountPanelProps) {
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const [all, setAll] = useState(false);
  const valid = tokens.filter(isValid);
  const ended = tokens.length - valid.length;
  const close = () => setDialog(null);
  const columns = useMemo(
    () =>
      tokenColumns(
        (of) => setDialog({ kind: "rotate", of }),
        (of) => setDialog({ kind: "revoke", of }),
      ),
    [],
  );
  const shown = all ? tokens : valid;
  return (
    <Panel
      flush
      title={
        <span className={classes.account}>
          {account.name}
          <span className="muted">{account.role}</span>
        </span>
      }
      aside={
        <>
          <span title={formatMoment(account.last_used_at)}>
            {account.last_used_at ? `last used ${formatAge(account.last_used_at)}` : "never used"}
          </span>
          <span className="row">
            <Button
              variant="default"
              size="compact-xs"
              leftSection={<IconPlus size={13} />}
              onClick={() => setDialog({ kind: "create" })}
            >
              New token
            </Button>
            <More name={account.name} onDelete={() => setDialog({ kind: "delete" })} />
          </span>
        </>
      }
    >
      <ListFrame query={query}>
        {shown.length === 0 ? (
          <p className={classes.none}>No token is valid: programs cannot use this account yet.</p>
        ) : (
          <DataTable
            label={`Tokens of ${account.name}`}
            rows={shown}
            columns={columns}
            rowId={(token) => token.id}
            rowClass={(token) => (isValid(token) ? undefined : "faint")}
          />
        )}
        {ended > 0 && (
          <button type="button" className={classes.ended} onClick={() => setAll(!all)}>
            {all ? "Hide" : "Show"} {formatPlural(ended, "ended token")}
          </button>
        )}
      </ListFrame>
      {dialog?.kind === "create" && (
        <CreateToken project={project} account={account} onClose={close} onCreated={onSecret} />
      )}
      {dialog?.kind === "rotate" && (
        <RotateToken token={dialog.of} onClose={close} onRotated={onSecret} />
      )}
      {dialog?.kind === "revoke" && <RevokeToken token={dialog.of} onClose={close} />}
      {dialog?.kind === "delete" && (
        <DeleteAccount project={project} account={account} tokens={valid.length} onClose={close} />
      )}
    </Panel>
  );
}

function More({ name, onDelete }: { name: string; onDelete(): void }) {
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon size={22} aria-label={`More actions on ${name}`}>
          <IconDots size={15} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconTrash size={14} />} onClick={onDelete}>
          Delete…
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface DeleteProps {
  project: string;
  account: ServiceAccount;
  tokens: number;
  onClose(): void;
}

function DeleteAccount({ project, account, tokens, onClose }: DeleteProps) {
  const refresh = useCredentialRefresh(project);
  return (
    <ConfirmDialog
      title={`Delete ${account.name}?`}
      submit="Delete"
      act={() => deleteServiceAccount(project, account.name)}
      onDone={() => refresh().then(onClose)}
      onClose={onClose}
    >
      <p>
        {tokens > 0 &&
          `${formatPlural(tokens, "valid token")} of ${account.name} will end at once. `}
        What it submitted stays and goes on. Its name cannot be used again.
      </p>
    </ConfirmDialog>
  );
}
