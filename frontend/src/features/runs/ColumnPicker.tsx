import { Button, Popover, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { runKeysQuery } from "@/api/runQueries";
import { writeThresholdKey } from "@/lib/thresholdKeys";
import { IconColumns } from "@/ui/icons";
import { SearchInput } from "@/ui/SearchInput";
import {
  describeKey,
  FIELDS,
  nameStatistic,
  STATISTICS,
  THRESHOLD_STATISTICS,
  writeSeriesKey,
} from "./columnKeys";
import classes from "./Runs.module.css";
import { DEFAULT_COLUMNS } from "./search";

interface ColumnPickerProps {
  project: string;
  columns: readonly string[];
  onChange(columns: readonly string[]): void;
}

/** Entries of a section that are listed; typing finds the others. */
const MOST = 60;

/** Chooses the columns: fields of runs, definitions, statistics of series, thresholds. */
export function ColumnPicker({ project, columns, onChange }: ColumnPickerProps) {
  const [isOpened, setIsOpened] = useState(false);
  return (
    <Popover opened={isOpened} onChange={setIsOpened} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<IconColumns size={15} />}
          aria-expanded={isOpened}
          onClick={() => setIsOpened(!isOpened)}
        >
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={0} w={380}>
        {isOpened && <Choices project={project} columns={columns} onChange={onChange} />}
      </Popover.Dropdown>
    </Popover>
  );
}

function Choices({ project, columns, onChange }: ColumnPickerProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const keys = useQuery(runKeysQuery(project));
  const wanted = text.trim().toLowerCase();
  const matches = (name: string) => name.toLowerCase().includes(wanted);
  const toggle = (key: string) =>
    onChange(columns.includes(key) ? columns.filter((one) => one !== key) : [...columns, key]);
  const fields = Object.entries(FIELDS).filter(
    ([key, { title }]) => matches(key) || matches(title),
  );
  const members = (keys.data?.members ?? []).filter(matches);
  const series = (keys.data?.series ?? []).filter(matches);
  const thresholds = (keys.data?.thresholds ?? []).filter(matches);
  return (
    <div className={classes.picker}>
      <div className={classes.pickerHead}>
        <SearchInput
          input={input}
          label="Search columns"
          value={text}
          onChange={setText}
          className={classes.pickerSearch}
        />
        <Button variant="subtle" size="compact-xs" onClick={() => onChange(DEFAULT_COLUMNS)}>
          Reset
        </Button>
      </div>
      <div className={classes.pickerList}>
        {fields.length > 0 && <h3>Run</h3>}
        {fields.map(([key, { title }]) => (
          <Choice key={key} name={key} label={title} columns={columns} onToggle={toggle} />
        ))}
        {series.length > 0 && <h3>Series</h3>}
        {series.slice(0, MOST).map((name) => (
          <StatisticChoice
            key={name}
            name={name}
            keys={STATISTICS.map((one) => writeSeriesKey(name, one))}
            columns={columns}
            onToggle={toggle}
          />
        ))}
        <Rest count={series.length} />
        {thresholds.length > 0 && <h3>First reached</h3>}
        {thresholds.map((name) => (
          <StatisticChoice
            key={name}
            name={name}
            keys={THRESHOLD_STATISTICS.map((one) => writeThresholdKey(name, one))}
            columns={columns}
            onToggle={toggle}
          />
        ))}
        {members.length > 0 && <h3>Definition</h3>}
        {members.slice(0, MOST).map((path) => (
          <Choice key={path} name={path} label={path} columns={columns} onToggle={toggle} />
        ))}
        <Rest count={members.length} />
        {keys.error && <p className="muted">{keys.error.message}</p>}
        {wanted !== "" &&
          fields.length + members.length + series.length + thresholds.length === 0 && (
            <p className="muted">No column has “{text.trim()}” in its name.</p>
          )}
      </div>
    </div>
  );
}

function Rest({ count }: { count: number }) {
  return count > MOST && <p className="faint">{count - MOST} more: type a part of the name.</p>;
}

interface ChoiceProps {
  name: string;
  label: string;
  columns: readonly string[];
  onToggle(key: string): void;
}

function Choice({ name, label, columns, onToggle }: ChoiceProps) {
  return (
    <label className={classes.choice}>
      <input type="checkbox" checked={columns.includes(name)} onChange={() => onToggle(name)} />
      <span className="clip">{label}</span>
    </label>
  );
}

interface StatisticChoiceProps {
  /** Series or threshold. */
  name: string;
  /** The keys of its statistics. */
  keys: readonly string[];
  columns: readonly string[];
  onToggle(key: string): void;
}

function StatisticChoice({ name, keys, columns, onToggle }: StatisticChoiceProps) {
  return (
    <div className={classes.choice}>
      <span className="clip grow" title={name}>
        {name}
      </span>
      {keys.map((key) => {
        const statistic = nameStatistic(describeKey(key).statistic ?? "");
        return (
          <UnstyledButton
            key={key}
            className={classes.statisticChoice ?? ""}
            aria-pressed={columns.includes(key)}
            aria-label={`${name}, ${statistic}`}
            onClick={() => onToggle(key)}
          >
            {statistic}
          </UnstyledButton>
        );
      })}
    </div>
  );
}
