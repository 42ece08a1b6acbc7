import { ActionIcon, Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { enrolmentTokensQuery, revokeEnrolmentToken } from "@/api/pools";
import type { EnrolmentToken } from "@/api/types";
import { formatAge, formatDay, formatMoment } from "@/lib/format";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { type Column, DataTable } from "@/ui/DataTable";
import { IconPlus, IconX } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { SecretDialog } from "@/ui/SecretDialog";
import { CreateEnrolment } from "./CreateEnrolment";
import classes from "./Pools.module.css";
import { buildWorkerCommand } from "./pool";
import { usePoolRefresh } from "./usePoolRefresh";

/** The tokens with which workers enrol in a pool. */
export function EnrolmentTokens({ pool }: { pool: string }) {
  const query = useQuery(enrolmentTokensQuery(pool));
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<EnrolmentToken | null>(null);
  const [revoking, setRevoking] = useState<EnrolmentToken | null>(null);
  const columns = useMemo(() => tokenColumns(setRevoking), []);
  const tokens = query.data ?? [];
  return (
    <Panel
      flush
      title="Enrolment tokens"
      aside={
        <Button
          variant="default"
          size="compact-xs"
          leftSection={<IconPlus size={13} />}
          onClick={() => setCreating(true)}
        >
          New token
        </Button>
      }
    >
      <ListFrame query={query}>
        {tokens.length === 0 ? (
          <p className={classes.note}>
            To add a machine, make a token: the dialog shows the command that starts a worker with
            it. Workers that enrolled outlive the token.
          </p>
        ) : (
          <DataTable
            label="Enrolment tokens"
            rows={tokens}
            columns={columns}
            rowId={(token) => token.id}
          />
        )}
      </ListFrame>
      {creating && (
        <CreateEnrolment pool={pool} onClose={() => setCreating(false)} onCreated={setMade} />
      )}
      {revoking && (
        <RevokeEnrolment pool={pool} token={revoking} onClose={() => setRevoking(null)} />
      )}
      <SecretDialog
        title={`Start a worker of the pool ${pool}`}
        secret={made?.secret ? buildWorkerCommand(made.secret) : null}
        intro="Run this on the machine that shall train, where Palestra is installed. Copy it now: the token's secret is shown once, and the server keeps only its hash."
        onClose={() => setMade(null)}
      >
        <p className="muted">
          A slot runs one job at a time. <code>--gpus 0,1</code> offers GPUs,{" "}
          <code>palestra worker --help</code> lists what else there is. The worker appears on this
          page as soon as it is connected, and keeps a secret of its own from then on.
        </p>
      </SecretDialog>
    </Panel>
  );
}

function tokenColumns(revoke: (token: EnrolmentToken) => void): Column<EnrolmentToken>[] {
  return [
    {
      id: "name",
      header: "Token",
      cell: (token) => (
        <span className={classes.name}>
          <b className="clip">{token.name}</b>
        </span>
      ),
    },
    {
      id: "by",
      header: "By",
      width: 92,
      hide: "narrow",
      cell: (token) => token.created_by ?? <span className="faint">–</span>,
    },
    {
      id: "used",
      header: "Last used",
      width: 104,
      hide: "narrow",
      cell: (token) => (
        <span title={formatMoment(token.last_used_at)}>
          {token.last_used_at ? (
            formatAge(token.last_used_at)
          ) : (
            <span className="faint">never</span>
          )}
        </span>
      ),
    },
    {
      id: "ends",
      header: "Ends",
      width: 104,
      cell: (token) =>
        token.expires_at === null ? (
          "never"
        ) : (
          <span title={formatMoment(token.expires_at)}>{formatDay(token.expires_at)}</span>
        ),
    },
    {
      id: "revoke",
      header: "",
      width: 48,
      align: "right",
      cell: (token) => (
        <ActionIcon size={22} aria-label={`Revoke ${token.name}`} onClick={() => revoke(token)}>
          <IconX size={14} />
        </ActionIcon>
      ),
    },
  ];
}

interface RevokeProps {
  pool: string;
  token: EnrolmentToken;
  onClose(): void;
}

function RevokeEnrolment({ pool, token, onClose }: RevokeProps) {
  const refresh = usePoolRefresh();
  return (
    <ConfirmDialog
      title={`Revoke ${token.name}?`}
      submit="Revoke"
      act={() => revokeEnrolmentToken(pool, token.id)}
      onDone={() => refresh().then(onClose)}
      onClose={onClose}
    >
      <p>No further worker enrols with the token. Workers that enrolled with it go on.</p>
    </ConfirmDialog>
  );
}
