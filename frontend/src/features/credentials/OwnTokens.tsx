import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionQuery } from "@/api/queries";
import { tokensQuery } from "@/api/serviceAccounts";
import type { Token } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { getServerAddress } from "@/lib/publicPath";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { CreateOwnToken } from "./CreateOwnToken";
import classes from "./Credentials.module.css";
import { OwnSecret } from "./OwnSecret";
import { RevokeToken } from "./RevokeToken";
import { RotateToken } from "./RotateToken";
import { isValid, tokenColumns } from "./tokenColumns";

type Dialog = { kind: "create" } | { kind: "rotate" | "revoke"; of: Token };

const PROJECT: Column<Token> = {
  id: "project",
  header: "Project",
  width: 130,
  hide: "medium",
  cell: (token) => token.project ?? <span className="muted">all of yours</span>,
};

/** The caller's own API tokens: first the valid ones, then those that have ended. */
export function OwnTokens() {
  const query = useQuery(tokensQuery);
  const session = useQuery({ ...sessionQuery, enabled: false }).data;
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const [secret, setSecret] = useState<Token | null>(null);
  const [all, setAll] = useState(false);
  const own = (query.data ?? []).filter((token) => token.user === session?.user);
  const valid = own.filter(isValid);
  const ended = own.filter((token) => !isValid(token));
  const close = () => setDialog(null);
  const [name, scopes, ...rest] = tokenColumns(
    (of) => setDialog({ kind: "rotate", of }),
    (of) => setDialog({ kind: "revoke", of }),
  ) as [Column<Token>, Column<Token>, ...Column<Token>[]];
  const table = (label: string, rows: readonly Token[]) => (
    <DataTable
      label={label}
      rows={rows}
      columns={[name, scopes, PROJECT, ...rest]}
      rowId={(token) => token.id}
    />
  );
  return (
    <Panel
      flush
      title="API tokens"
      aside={
        <Button leftSection={<IconPlus size={13} />} onClick={() => setDialog({ kind: "create" })}>
          New token
        </Button>
      }
    >
      <ListFrame query={query}>
        {valid.length === 0 ? (
          <EmptyState
            small
            title="You have no valid token"
            command={`palestra login ${getServerAddress()}`}
          >
            A token lets the command, a script or a notebook act for you without your password.
            Create one here, then run this on the machine where you work; it asks for the token:
          </EmptyState>
        ) : (
          table("API tokens", valid)
        )}
        {ended.length > 0 && (
          <button type="button" className={classes.ended} onClick={() => setAll(!all)}>
            {all ? "Hide" : "Show"} {formatPlural(ended.length, "expired or revoked token")}
          </button>
        )}
        {all && ended.length > 0 && (
          <div className="faint">{table("Expired and revoked tokens", ended)}</div>
        )}
      </ListFrame>
      {dialog?.kind === "create" && (
        <CreateOwnToken projects={session?.projects ?? []} onClose={close} onCreated={setSecret} />
      )}
      {dialog?.kind === "rotate" && (
        <RotateToken token={dialog.of} onClose={close} onRotated={setSecret} />
      )}
      {dialog?.kind === "revoke" && <RevokeToken token={dialog.of} onClose={close} />}
      <OwnSecret token={secret} onClose={() => setSecret(null)} />
    </Panel>
  );
}
