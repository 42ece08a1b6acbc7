import { Switch, Textarea, TextInput } from "@mantine/core";
import { findFaultAt } from "@/api/client";
import type { Pool } from "@/api/types";
import { formatHours, parseHours } from "@/lib/hours";
import classes from "./Pools.module.css";

const NO_HOURS = "Write hours, such as 24 or 0.5.";

export const FIELDS = ["/name", "/description", "/default_wall_seconds", "/max_wall_seconds"];

/** The typed values of a pool's form. */
export interface PoolForm {
  description: string;
  byDefault: string;
  atMost: string;
  showsNames: boolean;
}

export function readForm(pool: Pool | null): PoolForm {
  return {
    description: pool?.description ?? "",
    byDefault: formatHours(pool?.default_wall_seconds),
    atMost: formatHours(pool?.max_wall_seconds),
    showsNames: pool?.shows_names ?? false,
  };
}

/** Makes the members of a request from the typed values of the form. */
export function buildRequest(form: PoolForm) {
  return {
    description: form.description,
    default_wall_seconds: parseHours(form.byDefault),
    max_wall_seconds: parseHours(form.atMost),
    shows_names: form.showsNames,
  };
}

export function isComplete(form: PoolForm): boolean {
  return !Number.isNaN(parseHours(form.byDefault)) && !Number.isNaN(parseHours(form.atMost));
}

interface PoolFieldsProps {
  form: PoolForm;
  error: unknown;
  onChange(form: PoolForm): void;
}

/** The fields of a pool that can change. */
export function PoolFields({ form, error, onChange }: PoolFieldsProps) {
  const fault = (typed: string, pointer: string) =>
    Number.isNaN(parseHours(typed)) ? NO_HOURS : findFaultAt(error, pointer);
  return (
    <>
      <Textarea
        label="Description"
        description="For example the machines, and who may use them for what"
        rows={2}
        resize="vertical"
        value={form.description}
        error={findFaultAt(error, "/description")}
        onChange={(event) => onChange({ ...form, description: event.currentTarget.value })}
      />
      <div className={classes.pair}>
        <TextInput
          label="Default wall time (h)"
          description="Of jobs that name none"
          placeholder="No limit"
          inputMode="decimal"
          value={form.byDefault}
          error={fault(form.byDefault, "/default_wall_seconds")}
          onChange={(event) => onChange({ ...form, byDefault: event.currentTarget.value })}
        />
        <TextInput
          label="Maximum wall time (h)"
          description="That a job may ask for"
          placeholder="No limit"
          inputMode="decimal"
          value={form.atMost}
          error={fault(form.atMost, "/max_wall_seconds")}
          onChange={(event) => onChange({ ...form, atMost: event.currentTarget.value })}
        />
      </div>
      <Switch
        label="Projects see whose job is in a busy slot"
        description="Otherwise a job of another project shows as busy, without a name"
        checked={form.showsNames}
        onChange={(event) => onChange({ ...form, showsNames: event.currentTarget.checked })}
      />
    </>
  );
}
