import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { invitationsQuery } from "@/api/people";
import type { Invitation } from "@/api/types";
import { tidy } from "@/lib/search";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconUserPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { BelowList, ShowMore } from "@/ui/ShowMore";
import { ManagersOnly } from "./frames";
import { InviteForm } from "./InviteForm";
import { invitationColumns } from "./invitationColumns";
import { NewLinks } from "./NewLinks";
import { PeopleTabs } from "./PeopleTabs";
import { RevokeDialog } from "./RevokeDialog";
import type { InvitationsSearch } from "./search";

interface InvitationsPageProps {
  search: InvitationsSearch;
  onSearch(search: InvitationsSearch): void;
}

/** The list of invitations, and the form that creates them. */
export function InvitationsPage({ search, onSearch }: InvitationsPageProps) {
  const { reason } = usePermission("server.users");
  const [made, setMade] = useState<Invitation[]>([]);
  const show = (invite: true | undefined) =>
    onSearch(tidy({ ...search, invite }) as InvitationsSearch);
  return (
    <Page
      title="Invitations"
      facts={<span>One-time links with which people become users of this server</span>}
      actions={
        !search.invite && (
          <Permitted reason={reason}>
            <Button leftSection={<IconUserPlus size={14} />} onClick={() => show(true)}>
              Invite people
            </Button>
          </Permitted>
        )
      }
    >
      <PeopleTabs />
      <ManagersOnly>
        {made.length > 0 && <NewLinks invitations={made} onClose={() => setMade([])} />}
        {search.invite && (
          <InviteForm
            onClose={() => show(undefined)}
            onMade={(invitations) => {
              setMade(invitations);
              show(undefined);
            }}
          />
        )}
        <Invitations search={search} onSearch={onSearch} onInvite={() => show(true)} />
      </ManagersOnly>
    </Page>
  );
}

function Invitations({
  search,
  onSearch,
  onInvite,
}: InvitationsPageProps & { onInvite: () => void }) {
  const query = useInfiniteQuery(invitationsQuery(search.sort));
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const [revoked, setRevoked] = useState<Invitation | null>(null);
  const columns = useMemo(() => invitationColumns(setRevoked), []);
  const sort = search.sort ?? "-created_at";
  return (
    <Panel flush>
      <ListFrame query={query}>
        {rows.length === 0 ? (
          <Nothing isInviting={search.invite ?? false} onInvite={onInvite} />
        ) : (
          <DataTable
            label="Invitations"
            rows={rows}
            columns={columns}
            rowId={(row) => row.id}
            sorting={{
              state: [{ id: sort.replace("-", ""), desc: sort.startsWith("-") }],
              sortable: ["created_at", "expires_at"],
              onChange: ([first]) => {
                const sort = first && `${first.desc ? "-" : ""}${first.id}`;
                onSearch(tidy({ ...search, sort }) as InvitationsSearch);
              },
            }}
            footer={<ShowMore query={query} />}
          />
        )}
      </ListFrame>
      {revoked && <RevokeDialog invitation={revoked} onClose={() => setRevoked(null)} />}
    </Panel>
  );
}

function Nothing({ isInviting, onInvite }: { isInviting: boolean; onInvite: () => void }) {
  return (
    <>
      <EmptyState title="Nobody has been invited yet">
        An invitation is a link that you hand to a person. Whoever opens it chooses a login name and
        a password, and is a member of the projects that you name. A link works once, expires, and
        can be revoked until it is used.
      </EmptyState>
      {!isInviting && <BelowList onClick={onInvite}>Invite people</BelowList>}
    </>
  );
}
