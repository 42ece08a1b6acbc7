import { Select } from "@mantine/core";
import { useMemo } from "react";
import type { Preset } from "@/api/types";
import classes from "./Submit.module.css";

interface PresetSelectProps {
  presets: readonly Preset[];
  value: string | null;
  onChoose(preset: Preset): void;
}

/** Chooses the submission from which the form begins. */
export function PresetSelect({ presets, value, onChoose }: PresetSelectProps) {
  const data = useMemo(
    () =>
      presets.map((one) => ({ value: one.name, label: `${one.env} · ${one.agent}: ${one.title}` })),
    [presets],
  );
  const chosen = presets.find((one) => one.name === value);
  return (
    <Select
      label="Start from"
      description={chosen?.description ?? "A submission that comes with Palestra"}
      inputWrapperOrder={["label", "input", "description"]}
      placeholder="Choose an environment and an agent"
      data={data}
      value={value}
      searchable
      allowDeselect={false}
      maxDropdownHeight={360}
      nothingFoundMessage="No preset matches"
      renderOption={({ option }) => {
        const preset = presets.find((one) => one.name === option.value);
        return (
          <span className={classes.preset}>
            <span>
              {preset?.env} · <b>{preset?.agent}</b>
            </span>
            <span className="faint clip">{preset?.title}</span>
          </span>
        );
      }}
      onChange={(name) => {
        const preset = presets.find((one) => one.name === name);
        if (preset) onChoose(preset);
      }}
    />
  );
}
