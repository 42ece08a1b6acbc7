import { Select, Switch } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { partsQuery } from "@/api/queries";
import { SearchInput } from "@/ui/SearchInput";
import classes from "./ExperimentsPage.module.css";
import { type ExperimentsSearch, STATES } from "./search";

const BUILT_IN = ["dqn", "ppo"];

interface FiltersProps {
  search: ExperimentsSearch;
  onChange(part: { [Key in keyof ExperimentsSearch]?: ExperimentsSearch[Key] | undefined }): void;
}

/** The filter of the list, which is part of the URL. */
export function Filters({ search, onChange }: FiltersProps) {
  const input = useRef<HTMLInputElement>(null);
  const offered = useQuery(partsQuery).data ?? BUILT_IN;
  const agents = [...new Set([...offered, ...(search.agent ? [search.agent] : [])])];
  const [typed, setTyped] = useState(search.text ?? "");
  const send = useDebouncedCallback(
    (text: string) => onChange({ text: text.trim() || undefined }),
    200,
  );
  useEffect(() => setTyped(search.text ?? ""), [search.text]);
  return (
    <div className={classes.filters}>
      <SearchInput
        input={input}
        className={classes.search}
        label="Search name or ID"
        value={typed}
        onChange={(text) => {
          setTyped(text);
          send(text);
        }}
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
      <Switch
        label="Archived"
        checked={search.archived ?? false}
        onChange={(event) => onChange({ archived: event.currentTarget.checked || undefined })}
      />
    </div>
  );
}
