import { NativeSelect, Switch } from "@mantine/core";
import { type ReactNode, useRef } from "react";
import { AXIS_LABELS } from "@/lib/axes";
import { ResetZoom, Smoothing } from "@/ui/CurveControls";
import { SearchInput } from "@/ui/SearchInput";
import { useTyped } from "@/ui/useTyped";
import classes from "./Board.module.css";
import { hasInterval } from "./boardQuery";
import { AGGREGATES, AXES, BANDS, type BoardSearch, type ChangeBoard, SCALES } from "./boardSearch";

const AGGREGATE_LABELS = { mean: "mean", median: "median", iqm: "IQM" };
const BAND_LABELS = {
  none: "no band",
  stdev: "± stdev",
  stderr: "± stderr",
  range: "min to max",
  interval: "95 % interval",
};
const CARRY = "Runs that succeeded count on in their group with their last value";

interface BoardBarProps {
  search: BoardSearch;
  change: ChangeBoard;
  grouped: boolean;
}

/** All controls of the board. */
export function BoardBar({ search, change, grouped }: BoardBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const { text, type } = useTyped(search.panels, (panels) => change({ panels }));
  const aggregate = search.aggregate ?? "mean";
  return (
    <div className={classes.bar} role="toolbar" aria-label="Board">
      <SearchInput
        input={input}
        className={classes.search}
        label="Search panels"
        value={text}
        onChange={type}
      />
      <Choice
        label="X axis"
        value={search.x ?? "env_step"}
        options={AXES}
        labels={AXIS_LABELS}
        onChange={(x) =>
          change({ x: x === "env_step" ? undefined : x, start: undefined, end: undefined })
        }
      />
      <Choice
        label="Y scale"
        value={search.scale ?? "linear"}
        options={SCALES}
        labels={{ linear: "linear", log: "log", symlog: "symlog" }}
        onChange={(scale) => change({ scale: scale === "linear" ? undefined : scale })}
      />
      <Smoothing value={search.smooth ?? 0} onChange={(smooth) => change({ smooth })} />
      {grouped && (
        <>
          <Choice
            label="Aggregate"
            value={aggregate}
            options={AGGREGATES}
            labels={AGGREGATE_LABELS}
            onChange={(next) => change({ aggregate: next === "mean" ? undefined : next })}
          />
          <Choice
            label="Band"
            value={search.band ?? "stderr"}
            options={BANDS.filter((one) => one !== "interval" || hasInterval(aggregate))}
            labels={BAND_LABELS}
            onChange={(band) => change({ band: band === "stderr" ? undefined : band })}
          />
          <Toggle
            label="Runs"
            title="Runs drawn faintly behind their groups"
            checked={search.faint !== "hide"}
            onChange={(on) => change({ faint: on ? undefined : "hide" })}
          />
          <Toggle
            label="Carry forward"
            title={CARRY}
            checked={search.carry ?? false}
            onChange={(on) => change({ carry: on || undefined })}
          />
        </>
      )}
      <Toggle
        label="Outliers"
        title="Without them the y axis shows the 2nd to the 98th percentile"
        checked={search.outliers !== "clip"}
        onChange={(on) => change({ outliers: on ? undefined : "clip" })}
      />
      <ResetZoom range={search} onReset={change} />
    </div>
  );
}

interface ChoiceProps<Option extends string> {
  label: string;
  value: Option;
  options: readonly Option[];
  labels: Record<Option, ReactNode>;
  onChange(option: Option): void;
}

function Choice<Option extends string>(props: ChoiceProps<Option>) {
  const { label, value, options, labels, onChange } = props;
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      title={label}
      value={value}
      data={options.map((one) => ({ value: one, label: String(labels[one]) }))}
      onChange={(event) => onChange(event.currentTarget.value as Option)}
    />
  );
}

interface ToggleProps {
  label: string;
  title: string;
  checked: boolean;
  onChange(on: boolean): void;
}

function Toggle({ label, title, checked, onChange }: ToggleProps) {
  return (
    <Switch
      label={label}
      title={title}
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
