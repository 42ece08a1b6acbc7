import { Autocomplete, MultiSelect, Select, Switch } from "@mantine/core";
import { Message } from "@/ui/Message";
import { findFault } from "./faults";
import { labelMember, showFallback, useForm, useMember } from "./form";
import { parseNumber } from "./numbers";
import { type Field, isEqual } from "./schema";
import type { Path } from "./text";

interface FieldProps {
  field: Field;
  path: Path;
}

/** A field with given values: a switch, one of several, or some of several. */
export function ChoiceField({ field, path }: FieldProps) {
  const { faults, isFrozen } = useForm();
  const [value, change] = useMember(path);
  // The default is not written: it stays the default where a later version changes it.
  const choose = (next: unknown) => change(isEqual(next, field.fallback) ? undefined : next);
  const current = value === undefined ? field.fallback : value;
  const common = {
    label: labelMember(path),
    description: field.description && <Message text={field.description} />,
    error: findFault(faults, path),
    disabled: isFrozen,
  };
  const order = { inputWrapperOrder: ["label", "input", "error", "description"] as const };
  if (field.kind === "switch")
    return (
      <Switch
        {...common}
        checked={current === true}
        onChange={(event) => choose(event.currentTarget.checked)}
      />
    );
  if (field.kind === "choices")
    return (
      <MultiSelect
        {...common}
        inputWrapperOrder={[...order.inputWrapperOrder]}
        data={field.choices}
        placeholder={Array.isArray(current) && current.length > 0 ? "" : "none"}
        value={Array.isArray(current) ? current.map(String) : []}
        onChange={choose}
      />
    );
  if (field.kind === "choiceOrInteger")
    return (
      <Autocomplete
        {...common}
        inputWrapperOrder={[...order.inputWrapperOrder]}
        data={field.choices}
        filter={({ options }) => options}
        placeholder={showFallback(field.fallback)}
        value={current === undefined || current === null ? "" : String(current)}
        onChange={(text) => choose(parseNumber(text, true) ?? (text || undefined))}
      />
    );
  const data = field.choices.map((choice) => ({
    value: choice,
    label: choice.replaceAll("_", " "),
  }));
  return (
    <Select
      {...common}
      inputWrapperOrder={[...order.inputWrapperOrder]}
      data={data}
      allowDeselect={false}
      value={current === undefined || current === null ? null : String(current)}
      onChange={(next) => choose(next ?? undefined)}
    />
  );
}
