import { ActionIcon, TextInput, Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";
import { IconBan } from "@/ui/icons";
import { Message } from "@/ui/Message";
import { findFault } from "./faults";
import { labelMember, showFallback, showValue, useForm, useMember } from "./form";
import { parseIntegers, parseNumber, parseTexts } from "./numbers";
import { type Field, isEqual } from "./schema";
import type { Path } from "./text";

interface FieldProps {
  field: Field;
  path: Path;
}

/** What can be typed into a field, and what is said of a text that cannot be read. */
const TYPES: Record<
  string,
  { parse(text: string): unknown; fault: string; mode: "text" | "decimal" | "numeric" }
> = {
  text: { parse: (text) => text || undefined, fault: "", mode: "text" },
  integer: {
    parse: (text) => parseNumber(text, true),
    fault: "Write a whole number, such as 20000 or 2e4.",
    mode: "numeric",
  },
  number: {
    parse: (text) => parseNumber(text, false),
    fault: "Write a number, such as 0.001 or 1e-3.",
    mode: "decimal",
  },
  texts: { parse: parseTexts, fault: "", mode: "text" },
  integers: {
    parse: parseIntegers,
    fault: "Write whole numbers with commas between them, such as 64, 64.",
    mode: "text",
  },
};

/** A field that is typed: a text, a number, or several. Empty, it takes the default. */
export function TypedField({ field, path }: FieldProps) {
  const { faults, isFrozen } = useForm();
  const [value, change] = useMember(path);
  const { parse, fault, mode } = TYPES[field.kind] ?? (TYPES.text as (typeof TYPES)[string]);
  const shown = value === undefined || value === null ? "" : showValue(value);
  const [typed, setTyped] = useState(shown);
  const [isWrong, setWrong] = useState(false);
  // A change of the YAML replaces what was typed, unless it is the same value.
  useEffect(() => {
    setTyped((text) => (isEqual(parse(text), value ?? undefined) ? text : shown));
    setWrong(false);
  }, [shown, value, parse]);
  const type = (text: string) => {
    setTyped(text);
    const next = parse(text);
    setWrong(next === null);
    if (next !== null) change(next);
  };
  const isNull = value === null;
  const label = labelMember(path);
  const canBeNull = field.isNullable && field.fallback !== null;
  return (
    <TextInput
      label={label}
      description={<Message text={field.description} />}
      inputWrapperOrder={["label", "input", "error", "description"]}
      placeholder={isNull ? "none" : showFallback(field.fallback)}
      value={typed}
      disabled={isFrozen}
      required={field.isRequired}
      withAsterisk={false}
      inputMode={mode}
      spellCheck={false}
      error={isWrong ? fault : findFault(faults, path)}
      onChange={(event) => type(event.currentTarget.value)}
      {...(canBeNull && {
        rightSection: (
          <NoneButton
            label={label}
            isNull={isNull}
            isFrozen={isFrozen}
            onClick={() => change(isNull ? undefined : null)}
          />
        ),
      })}
    />
  );
}

interface NoneButtonProps {
  label: string;
  isNull: boolean;
  isFrozen: boolean;
  onClick(): void;
}

/** Sets a member to `null`, or back to its default. */
function NoneButton({ label, isNull, isFrozen, onClick }: NoneButtonProps) {
  const what = isNull ? `${label}: take the default` : `${label}: none`;
  return (
    <Tooltip label={isNull ? "Take the default" : "Set to none"}>
      <ActionIcon
        size={20}
        aria-label={what}
        aria-pressed={isNull}
        disabled={isFrozen}
        variant={isNull ? "filled" : "subtle"}
        onClick={onClick}
      >
        <IconBan size={12} />
      </ActionIcon>
    </Tooltip>
  );
}
