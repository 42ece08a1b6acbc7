import { Select, TextInput } from "@mantine/core";
import { useRef } from "react";
import { SearchInput } from "@/ui/SearchInput";
import { useTyped } from "@/ui/useTyped";
import classes from "./Audit.module.css";
import type { AuditSearch } from "./auditSearch";

type Change = (part: { [Key in keyof AuditSearch]?: AuditSearch[Key] | undefined }) => void;

interface AuditFiltersProps {
  search: AuditSearch;
  onChange: Change;
}

/** The filter of the audit log, which is part of the URL. */
export function AuditFilters({ search, onChange }: AuditFiltersProps) {
  const input = useRef<HTMLInputElement>(null);
  const user = useTyped(search.user, (text) => onChange({ user: text }));
  const action = useTyped(search.action, (text) => onChange({ action: text }));
  const object = useTyped(search.object, (text) => onChange({ object: text }));
  return (
    <div className={classes.filters}>
      <SearchInput
        input={input}
        className={classes.person}
        label="User"
        value={user.text}
        onChange={user.type}
      />
      <TextInput
        aria-label="Action"
        placeholder="Action, for example token"
        className={classes.action ?? ""}
        value={action.text}
        onChange={(event) => action.type(event.currentTarget.value)}
      />
      <TextInput
        aria-label="ID of the object"
        placeholder="ID of the object"
        className={classes.object ?? ""}
        value={object.text}
        onChange={(event) => object.type(event.currentTarget.value)}
      />
      <Select
        aria-label="Outcome"
        placeholder="Any outcome"
        data={["allowed", "refused"]}
        value={search.outcome ?? null}
        onChange={(outcome) =>
          onChange({ outcome: (outcome ?? undefined) as AuditSearch["outcome"] })
        }
        clearable
        w={128}
      />
      <Day label="From" value={search.since} onChange={(since) => onChange({ since })} />
      <Day label="To" value={search.until} onChange={(until) => onChange({ until })} />
    </div>
  );
}

interface DayProps {
  label: string;
  value: string | undefined;
  onChange(day: string | undefined): void;
}

function Day({ label, value, onChange }: DayProps) {
  return (
    <span className={classes.day}>
      <span aria-hidden="true">{label}</span>
      <TextInput
        aria-label={`${label} this day`}
        type="date"
        value={value ?? ""}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    </span>
  );
}
