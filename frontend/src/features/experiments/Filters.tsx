import { Select, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useProject } from "@/api/access";
import { membersQuery } from "@/api/adminQueries";
import { partsQuery, sessionQuery } from "@/api/queries";
import { FilterInput } from "@/ui/FilterInput";
import { SearchInput } from "@/ui/SearchInput";
import { useTyped } from "@/ui/useTyped";
import classes from "./ExperimentsPage.module.css";
import { type ExperimentsSearch, STATES } from "./search";

const BUILT_IN = ["dqn", "ppo"];

interface FiltersProps {
  search: ExperimentsSearch;
  /** The server's message if the filter cannot be read. */
  fault: string | undefined;
  onChange(part: { [Key in keyof ExperimentsSearch]?: ExperimentsSearch[Key] | undefined }): void;
}

/**
 * Returns the choices of the user filter: the caller as "mine", then the other members by login
 * name.
 */
function usePeople(chosen: string | undefined): { value: string; label: string }[] {
  const project = useProject();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const members = useQuery({ ...membersQuery(project ?? ""), enabled: project !== null });
  const names = members.data?.map((one) => one.user) ?? [];
  const others = new Set([...names, ...(chosen && chosen !== "me" ? [chosen] : [])]);
  others.delete(session?.user ?? "");
  return [
    { value: "me", label: "mine" },
    ...[...others].map((name) => ({ value: name, label: name })),
  ];
}

/** The filter of the list, which is part of the URL. */
export function Filters({ search, fault, onChange }: FiltersProps) {
  const input = useRef<HTMLInputElement>(null);
  const offered = useQuery(partsQuery).data ?? BUILT_IN;
  const agents = [...new Set([...offered, ...(search.agent ? [search.agent] : [])])];
  const people = usePeople(search.user);
  const typed = useTyped(search.text, (text) => onChange({ text }));
  return (
    <div className={classes.filters}>
      <SearchInput
        input={input}
        className={classes.search}
        label="Search name or ID"
        value={typed.text}
        onChange={typed.type}
      />
      <Select
        aria-label="State"
        placeholder="Any state"
        data={[...STATES]}
        value={search.state ?? null}
        onChange={(state) =>
          onChange({ state: (state ?? undefined) as ExperimentsSearch["state"] })
        }
        clearable
        w={130}
      />
      <Select
        aria-label="Agent"
        placeholder="Any agent"
        data={agents}
        value={search.agent ?? null}
        onChange={(agent) => onChange({ agent: agent ?? undefined })}
        clearable
        searchable={agents.length > 8}
        w={140}
      />
      {people.length > 1 && (
        <Select
          aria-label="Submitted by"
          placeholder="By anyone"
          data={people}
          value={search.user ?? null}
          onChange={(user) => onChange({ user: user ?? undefined })}
          clearable
          searchable={people.length > 8}
          w={130}
        />
      )}
      <FilterInput
        value={search.filter}
        onChange={(filter) => onChange({ filter })}
        fault={fault}
        example="agent.gamma<0.99 evaluation/mean.best>400 created:<7d"
      />
      <Switch
        label="Archived"
        checked={search.archived ?? false}
        onChange={(event) => onChange({ archived: event.currentTarget.checked || undefined })}
      />
    </div>
  );
}
