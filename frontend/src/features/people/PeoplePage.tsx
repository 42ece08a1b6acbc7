import { Button, Select } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { usePermission } from "@/api/access";
import { peopleQuery } from "@/api/people";
import type { Person } from "@/api/types";
import { tidy } from "@/lib/search";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconUserPlus } from "@/ui/icons";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { SearchInput } from "@/ui/SearchInput";
import { BelowList, ShowMore } from "@/ui/ShowMore";
import { useTyped } from "@/ui/useTyped";
import { ManagersOnly } from "./frames";
import classes from "./People.module.css";
import { PeopleTabs } from "./PeopleTabs";
import { peopleColumns } from "./peopleColumns";
import type { PeopleSearch } from "./search";

interface PeoplePageProps {
  search: PeopleSearch;
  onSearch(search: PeopleSearch): void;
}

/** The list of people who may log in to the server or are disabled. */
export function PeoplePage(props: PeoplePageProps) {
  const { reason } = usePermission("server.users");
  return (
    <Page
      title="People"
      facts={<span>Who may log in to this server</span>}
      actions={
        <Permitted reason={reason}>
          <Button
            renderRoot={(root) => (
              <Link to="/admin/invitations" search={{ invite: true }} {...root} />
            )}
            leftSection={<IconUserPlus size={14} />}
          >
            Invite people
          </Button>
        </Permitted>
      }
    >
      <PeopleTabs />
      <ManagersOnly>
        <People {...props} />
      </ManagersOnly>
    </Page>
  );
}

function People({ search, onSearch }: PeoplePageProps) {
  const navigate = useNavigate();
  const query = useInfiniteQuery(peopleQuery(search));
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const change = (part: Change) => onSearch(tidy({ ...search, ...part }) as PeopleSearch);
  const sort = search.sort ?? "name";
  return (
    <Panel
      flush
      className={classes.panel}
      title={<Filters search={search} onChange={change} />}
      aside={
        rows.length > 0 && (
          <span className="faint">
            {rows.length}
            {query.hasNextPage ? "+" : ""} shown
          </span>
        )
      }
    >
      <ListFrame query={query}>
        {rows.length === 0 ? (
          <>
            <EmptyState title="Nobody matches">
              The search looks for a part of the login name, the display name or the e-mail address.
            </EmptyState>
            <BelowList onClick={() => onSearch({})}>Clear the filter</BelowList>
          </>
        ) : (
          <DataTable
            label="People"
            rows={rows}
            columns={peopleColumns}
            rowId={(person) => person.id}
            onOpen={({ name }) =>
              void navigate({ to: "/admin/people/$user", params: { user: name } })
            }
            sorting={{
              state: [{ id: sort.replace("-", ""), desc: sort.startsWith("-") }],
              sortable: ["name", "created_at"],
              onChange: ([first]) =>
                change({
                  sort: (first && `${first.desc ? "-" : ""}${first.id}`) as PeopleSearch["sort"],
                }),
            }}
            footer={<ShowMore query={query} />}
          />
        )}
      </ListFrame>
    </Panel>
  );
}

type Change = { [Key in keyof PeopleSearch]?: PeopleSearch[Key] | undefined };

function Filters({ search, onChange }: { search: PeopleSearch; onChange(part: Change): void }) {
  const input = useRef<HTMLInputElement>(null);
  const typed = useTyped(search.text, (text) => onChange({ text }));
  return (
    <div className={classes.filters}>
      <SearchInput
        input={input}
        className={classes.search}
        label="Search name or e-mail"
        value={typed.text}
        onChange={typed.type}
      />
      <Select
        aria-label="State"
        placeholder="Any state"
        data={["active", "disabled"]}
        value={search.state ?? null}
        onChange={(state) => onChange({ state: (state ?? undefined) as Person["state"] })}
        clearable
        w={130}
      />
    </div>
  );
}
