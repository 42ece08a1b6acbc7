import { Button, Checkbox, Popover } from "@mantine/core";
import { useState } from "react";
import type { Threshold } from "@/api/types";
import { formatValue } from "@/lib/format";
import { IconTarget } from "@/ui/icons";
import classes from "./ExperimentsPage.module.css";
import { MOST_SHOWN } from "./thresholdColumns";

interface ThresholdPickerProps {
  thresholds: readonly Threshold[];
  /** Names of those that have a column. */
  shown: readonly string[];
  onChange(names: readonly string[]): void;
}

/** Chooses the thresholds of the project that have a column; nothing in a project without any. */
export function ThresholdPicker({ thresholds, shown, onChange }: ThresholdPickerProps) {
  const [isOpened, setIsOpened] = useState(false);
  if (thresholds.length === 0) return null;
  const toggle = (name: string) =>
    onChange(shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name]);
  return (
    <Popover opened={isOpened} onChange={setIsOpened} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          className={classes.picker ?? ""}
          leftSection={<IconTarget size={15} />}
          aria-expanded={isOpened}
          onClick={() => setIsOpened(!isOpened)}
        >
          Thresholds
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={12} maw={360} aria-label="Thresholds with a column">
        <div className={classes.choices}>
          {thresholds.map(({ name, series, direction, value }) => (
            <Checkbox
              key={name}
              size="xs"
              label={name}
              description={`${series} ${direction === "at_least" ? "≥" : "≤"} ${formatValue(value)}`}
              checked={shown.includes(name)}
              disabled={!shown.includes(name) && shown.length >= MOST_SHOWN}
              onChange={() => toggle(name)}
            />
          ))}
        </div>
        <p className={classes.hint}>
          The median env_step at which the runs of an experiment first reached it, and how many did.
        </p>
      </Popover.Dropdown>
    </Popover>
  );
}
