import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { accountQuery } from "@/api/account";
import { formatDay, formatPlural } from "@/lib/format";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import classes from "./Account.module.css";
import { PasswordPanel } from "./PasswordPanel";
import { ProfilePanel } from "./ProfilePanel";
import { SessionsPanel } from "./SessionsPanel";

/** The caller's own account: profile, password, browser logins and API tokens. */
export function AccountPage({ children }: { children: ReactNode }) {
  const query = useQuery(accountQuery);
  const account = query.data;
  if (account === undefined) {
    return (
      <Page title="Account">
        <Panel flush>
          <ListFrame query={query}>{null}</ListFrame>
        </Panel>
      </Page>
    );
  }
  return (
    <Page
      title="Account"
      facts={
        <>
          <b>{account.name}</b>
          {account.is_admin && <span>administrator of the server</span>}
          <span>{formatPlural(account.projects.length, "project")}</span>
          <span>since {formatDay(account.created_at)}</span>
        </>
      }
    >
      <div className={classes.sections}>
        <ProfilePanel account={account} />
        <PasswordPanel account={account} />
        <SessionsPanel />
        <div className={classes.wide}>{children}</div>
      </div>
    </Page>
  );
}
