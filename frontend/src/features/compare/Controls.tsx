import { NumberInput, Select, TextInput } from "@mantine/core";
import { FilterInput } from "@/ui/FilterInput";
import { useTyped } from "@/ui/useTyped";
import classes from "./Compare.module.css";
import { type CompareChange, type CompareSearch, SCORES } from "./search";

const LABELS = {
  final: "Last evaluations",
  area: "Area under the curve",
  max: "Best evaluation",
} as const;

interface ControlsProps {
  search: CompareSearch;
  /** The server's messages on members of the query. */
  faults: { filter: string | undefined; by: string | undefined };
  onChange(part: CompareChange): void;
}

/** What is compared, in which groups, by which score; part of the URL. */
export function Controls({ search, faults, onChange }: ControlsProps) {
  const by = useTyped(search.by, (text) => onChange({ by: text }));
  const runs = useTyped(search.runs, (text) => onChange({ runs: text }));
  const experiments = useTyped(search.experiments, (text) => onChange({ experiments: text }));
  return (
    <div className={classes.controls}>
      <TextInput
        className={classes.ids ?? ""}
        label="Runs"
        placeholder="run_…, run_…"
        value={runs.text}
        onChange={(event) => runs.type(event.currentTarget.value)}
        spellCheck={false}
      />
      <TextInput
        className={classes.ids ?? ""}
        label="Experiments"
        placeholder="IDs with commas"
        value={experiments.text}
        onChange={(event) => experiments.type(event.currentTarget.value)}
        spellCheck={false}
      />
      <div className={classes.filter}>
        <FilterInput
          value={search.filter}
          onChange={(filter) => onChange({ filter })}
          fault={faults.filter}
          example="env:CartPole-v1 created:<7d"
        />
      </div>
      <TextInput
        label="Groups by"
        placeholder="single runs"
        value={by.text}
        error={faults.by}
        onChange={(event) => by.type(event.currentTarget.value)}
        spellCheck={false}
        w={150}
      />
      <Select
        label="Score"
        data={SCORES.map((value) => ({ value, label: LABELS[value] }))}
        value={search.score ?? "final"}
        onChange={(score) =>
          onChange({ score: score === "final" ? undefined : (score as CompareSearch["score"]) })
        }
        allowDeselect={false}
        w={170}
      />
      {(search.score ?? "final") === "final" && (
        <NumberInput
          label="Evaluations"
          min={1}
          max={1000}
          value={search.last ?? 1}
          onChange={(last) => onChange({ last: Number(last) > 1 ? Number(last) : undefined })}
          w={92}
        />
      )}
    </div>
  );
}
