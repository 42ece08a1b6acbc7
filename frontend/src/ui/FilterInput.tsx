import { TextInput } from "@mantine/core";
import classes from "./FilterInput.module.css";
import { IconFilter } from "./icons";
import { useTyped } from "./useTyped";

/** Where the server's refusal of a filter points. */
export const FILTER_POINTER = "query/filter";

interface FilterInputProps {
  /** The filter, as the server takes it. */
  value: string | undefined;
  /** Takes the filter after a pause in typing; `undefined` for an empty one. */
  onChange(filter: string | undefined): void;
  /** The server's message if the filter cannot be read. */
  fault: string | undefined;
  /** A filter that is shown while the field is empty. */
  example: string;
}

/** The field for the filter of a list, with the server's message where it cannot be read. */
export function FilterInput({ value, onChange, fault, example }: FilterInputProps) {
  const typed = useTyped(value, onChange);
  return (
    <TextInput
      className={classes.filter ?? ""}
      aria-label="Filter"
      placeholder={example}
      leftSection={<IconFilter size={14} />}
      spellCheck={false}
      autoComplete="off"
      value={typed.text}
      error={fault}
      onChange={(event) => typed.type(event.currentTarget.value)}
    />
  );
}
