import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { activePeopleQuery } from "@/api/people";

interface PersonSelectProps {
  label: string;
  /** Login name of a person who cannot be chosen. */
  except: string;
  value: string | null;
  onChange(user: string | null): void;
  error?: string | null | undefined;
}

/** A field to choose a person who may log in, searched on the server. */
export function PersonSelect({ label, except, value, onChange, error }: PersonSelectProps) {
  const [typed, setTyped] = useState("");
  const [searched] = useDebouncedValue(typed === value ? "" : typed, 200);
  const people = useQuery(activePeopleQuery(searched)).data ?? [];
  return (
    <Select
      label={label}
      placeholder="Login name"
      searchable
      searchValue={typed}
      onSearchChange={setTyped}
      nothingFoundMessage="Nobody of this name may log in"
      filter={({ options }) => options}
      data={people.map(({ name }) => name).filter((name) => name !== except)}
      renderOption={({ option }) => {
        const shown = people.find(({ name }) => name === option.value);
        return (
          <span>
            {option.value} <span className="faint">{shown?.display_name}</span>
          </span>
        );
      }}
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}
