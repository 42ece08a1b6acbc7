import { Autocomplete, TextInput } from "@mantine/core";
import { splitTerms } from "@/lib/filterTerms";
import classes from "./FilterInput.module.css";
import { IconFilter, IconX } from "./icons";
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
  /** Returns whole filters in which the last word is completed. */
  complete?: (filter: string) => string[];
}

/** The field for the filter of a list, with the server's message where it cannot be read. */
export function FilterInput({ value, onChange, fault, example, complete }: FilterInputProps) {
  const typed = useTyped(value, onChange);
  const common = {
    className: classes.filter ?? "",
    "aria-label": "Filter",
    placeholder: example,
    leftSection: <IconFilter size={14} />,
    spellCheck: false,
    autoComplete: "off",
    value: typed.text,
    error: fault,
  };
  if (complete === undefined)
    return <TextInput {...common} onChange={(event) => typed.type(event.currentTarget.value)} />;
  return (
    <Autocomplete
      {...common}
      data={complete(typed.text)}
      filter={({ options }) => options}
      onChange={typed.type}
      renderOption={({ option }) => (
        <code className={classes.option}>{/\S*$/.exec(option.value)?.[0]}</code>
      )}
      comboboxProps={{ position: "bottom-start", width: "max-content", shadow: "md" }}
    />
  );
}

interface FilterChipsProps {
  filter: string;
  onChange(filter: string): void;
}

/** The terms of a filter, each with a button that removes it. */
export function FilterChips({ filter, onChange }: FilterChipsProps) {
  const terms = splitTerms(filter);
  if (terms.length === 0) return null;
  const without = (place: number) => terms.filter((_, i) => i !== place).join(" ");
  return (
    <ul className={classes.chips} aria-label="Terms of the filter">
      {terms.map((term, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a filter may have a term twice
        <li key={`${term} ${place}`} className={classes.chip}>
          <code>{term}</code>
          <button
            type="button"
            aria-label={`Remove ${term}`}
            onClick={() => onChange(without(place))}
          >
            <IconX size={11} />
          </button>
        </li>
      ))}
    </ul>
  );
}
