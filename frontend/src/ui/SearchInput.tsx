import { TextInput } from "@mantine/core";
import { type KeyboardEvent, type RefObject, useEffect } from "react";
import { registerShortcuts } from "@/lib/shortcuts";
import { IconSearch } from "./icons";

interface SearchInputProps {
  input: RefObject<HTMLInputElement | null>;
  /** What is searched, for example "Search the log". */
  label: string;
  value: string;
  onChange(text: string): void;
  className?: string | undefined;
}

/** A search field: `/` focuses the field; Escape clears it, or leaves it when it is empty. */
export function SearchInput({ input, label, value, onChange, className }: SearchInputProps) {
  useEffect(
    () => registerShortcuts([{ keys: "/", what: label, run: () => input.current?.focus() }]),
    [label, input],
  );
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
    // Chromium would clear the field as well, with an event after the field has lost the focus.
    event.preventDefault();
    event.stopPropagation();
    if (value === "") event.currentTarget.blur();
    else onChange("");
  };
  return (
    <TextInput
      ref={input}
      className={className ?? ""}
      type="search"
      aria-label={label}
      placeholder={`${label}  ( / )`}
      leftSection={<IconSearch size={14} />}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  );
}
