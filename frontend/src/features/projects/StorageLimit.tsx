import { Select, TextInput } from "@mantine/core";
import { type Size, UNITS, type Unit } from "@/lib/sizes";
import classes from "./Projects.module.css";

interface StorageLimitProps {
  value: Size;
  onChange(value: Size): void;
  error?: string | undefined;
  readOnly?: boolean;
}

/** The field for a project's storage limit. */
export function StorageLimit({ value, onChange, error, readOnly = false }: StorageLimitProps) {
  return (
    <div className={classes.size}>
      <TextInput
        label="Storage limit"
        description="Once it is reached nothing can be submitted; empty for no limit"
        inputMode="decimal"
        placeholder="No limit"
        value={value.number}
        error={error}
        readOnly={readOnly}
        variant={readOnly ? "filled" : "default"}
        onChange={(event) => onChange({ ...value, number: event.currentTarget.value })}
      />
      <Select
        aria-label="Unit of the storage limit"
        data={[...UNITS]}
        value={value.unit}
        allowDeselect={false}
        readOnly={readOnly}
        variant={readOnly ? "filled" : "default"}
        onChange={(unit) => unit && onChange({ ...value, unit: unit as Unit })}
      />
    </div>
  );
}
