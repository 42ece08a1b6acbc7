import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { accountKeys, endLoginSession, loginSessionsQuery, signOutEverywhere } from "@/api/account";
import { setCsrfToken } from "@/api/client";
import type { LoginSession } from "@/api/types";
import { formatAge, formatMoment } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { FormDialog } from "@/ui/FormDialog";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import classes from "./Account.module.css";

const complain = (error: Error) =>
  notifications.show({ color: "red", title: "The request failed", message: error.message });

/** Browser logins that have not ended. */
export function SessionsPanel() {
  const query = useQuery(loginSessionsQuery);
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: endLoginSession,
    onSettled: () => client.invalidateQueries({ queryKey: accountKeys.sessions }),
    onError: complain,
  });
  const columns = useMemo(() => sessionColumns(end.mutate), [end.mutate]);
  const rows = useMemo(
    () => [...(query.data ?? [])].sort((a, b) => Number(b.is_present) - Number(a.is_present)),
    [query.data],
  );
  return (
    <Panel flush className={classes.wide} title="Browser logins" aside={<SignOut />}>
      <ListFrame query={query}>
        <DataTable label="Browser logins" rows={rows} columns={columns} rowId={(row) => row.id} />
      </ListFrame>
    </Panel>
  );
}

function SignOut() {
  const [asked, setAsked] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: signOutEverywhere,
    onSuccess: async () => {
      setCsrfToken(null);
      client.clear();
      await navigate({ to: "/login", search: {} });
    },
  });
  return (
    <>
      <Button variant="default" onClick={() => setAsked(true)}>
        Sign out everywhere
      </Button>
      <FormDialog
        opened={asked}
        title="Sign out everywhere?"
        submit="Sign out"
        destructive
        isPending={leave.isPending}
        problem={leave.error?.message}
        onSubmit={() => leave.mutate()}
        onClose={() => setAsked(false)}
      >
        <p>
          All your browser logins end, this one too, and so do login links that nobody has used.
          Jobs go on, and API tokens stay valid.
        </p>
      </FormDialog>
    </>
  );
}

const OPENED_BY = { password: "by password", link: "by link", invitation: "by invitation" };

function sessionColumns(end: (id: string) => void): Column<LoginSession>[] {
  return [
    {
      id: "browser",
      header: "Browser",
      wrap: true,
      cell: (row) => <b>{row.browser ?? "Unknown browser"}</b>,
    },
    {
      id: "address",
      header: "Address",
      width: "min(250px, 36%)",
      cell: (row) => (
        <span className="mono" title={row.address ?? undefined}>
          {row.address ?? "–"}
        </span>
      ),
    },
    {
      id: "opened",
      header: "Logged in",
      width: 190,
      hide: "narrow",
      cell: (row) => (
        <span title={formatMoment(row.created_at)}>
          {formatAge(row.created_at)}{" "}
          {row.opened_by && <span className="muted">{OPENED_BY[row.opened_by]}</span>}
        </span>
      ),
    },
    {
      id: "used",
      header: "Last used",
      width: 110,
      hide: "narrow",
      cell: (row) => (
        <span title={formatMoment(row.last_used_at)}>
          {row.is_present ? "now" : formatAge(row.last_used_at)}
        </span>
      ),
    },
    {
      id: "end",
      header: "",
      width: 92,
      align: "right",
      cell: (row) =>
        row.is_present ? (
          <span className={classes.present}>this one</span>
        ) : (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`End the login of ${row.browser ?? "an unknown browser"}`}
            onClick={() => end(row.id)}
          >
            End
          </Button>
        ),
    },
  ];
}
