import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { serviceAccountsQuery, tokensQuery } from "@/api/serviceAccounts";
import type { Token } from "@/api/types";
import { getServerAddress } from "@/lib/publicPath";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { AccountPanel } from "./AccountPanel";
import { CreateAccount } from "./CreateAccount";
import classes from "./Credentials.module.css";
import { NewSecret } from "./NewSecret";

/** The service accounts of a project, with their tokens. */
export function ServiceAccountsPage({ project }: { project: string }) {
  const right = usePermission("project.credentials", project);
  const [creating, setCreating] = useState(false);
  return (
    <Page
      title="Service accounts"
      facts={<span>of the project {project}: its users that are programs, and their tokens</span>}
      actions={
        <Permitted reason={right.reason}>
          <Button leftSection={<IconPlus size={14} />} onClick={() => setCreating(true)}>
            New service account
          </Button>
        </Permitted>
      }
    >
      {right.allowed ? (
        <Accounts project={project} />
      ) : (
        <Panel>
          <EmptyState title="You may not see the service accounts">{right.reason}</EmptyState>
        </Panel>
      )}
      {creating && <CreateAccount project={project} onClose={() => setCreating(false)} />}
    </Page>
  );
}

function Accounts({ project }: { project: string }) {
  const accounts = useQuery(serviceAccountsQuery(project));
  const tokens = useQuery(tokensQuery);
  const [shown, setShown] = useState<Token | null>(null);
  const found = accounts.data ?? [];
  return (
    <>
      {found.length === 0 ? (
        <Panel>
          <ListFrame query={accounts}>
            <Introduction project={project} />
          </ListFrame>
        </Panel>
      ) : (
        found.map((account) => (
          <AccountPanel
            key={account.user_id}
            project={project}
            account={account}
            query={tokens}
            tokens={(tokens.data ?? []).filter((one) => one.user === account.name)}
            onSecret={setShown}
          />
        ))
      )}
      <NewSecret project={project} token={shown} onClose={() => setShown(null)} />
    </>
  );
}

/** Explains how a pipeline of continuous integration uses a service account. */
function Introduction({ project }: { project: string }) {
  return (
    <EmptyState
      title="No service account yet"
      command={[
        `export PALESTRA_SERVER=${getServerAddress()}`,
        `export PALESTRA_PROJECT=${project}`,
        "export PALESTRA_TOKEN=…   # from the secrets of your CI",
        "palestra submit experiment.yaml --watch",
      ].join("\n")}
    >
      <span className={classes.steps}>
        A pipeline that submits experiments should not use a person's token, which ends with that
        person's membership. Create a service account with the role member, give it a token, and
        store the token's secret among the secrets of your CI. Then a pipeline runs:
      </span>
    </EmptyState>
  );
}
