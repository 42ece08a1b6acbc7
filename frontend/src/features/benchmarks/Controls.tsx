import { NumberInput, Select, TextInput } from "@mantine/core";
import { FilterInput } from "@/ui/FilterInput";
import { useTyped } from "@/ui/useTyped";
import classes from "./Benchmarks.module.css";
import {
  type BenchmarksChange,
  type BenchmarksSearch,
  MOST_LAST,
  NORMALISATIONS,
  readReferences,
  SCORES,
} from "./search";

const SCORE_LABELS = {
  final: "Last evaluations",
  area: "Area under the curve",
  max: "Best evaluation",
} as const;
const NORMALISATION_LABELS = {
  min_max: "Lowest and highest of these runs",
  "atari-human-1": "Atari, random to human",
  "mujoco-d4rl-1": "MuJoCo v2–v4, random to expert",
  given: "Own reference scores",
} as const;

interface ControlsProps {
  search: BenchmarksSearch;
  /** The server's messages on members of the query. */
  faults: { filter: string | undefined; by: string | undefined };
  onChange(part: BenchmarksChange): void;
}

/** What the statistics are over and how a run's score is computed, which is part of the URL. */
export function Controls({ search, faults, onChange }: ControlsProps) {
  const by = useTyped(search.by, (text) => onChange({ by: text }));
  const references = useTyped(search.references, (text) => onChange({ references: text }));
  const takesReferences = search.normalise !== undefined && search.normalise !== "min_max";
  const fault = readReferences(search.references).fault;
  return (
    <div className={classes.controls}>
      <div className={classes.filter}>
        <FilterInput
          value={search.filter}
          onChange={(filter) => onChange({ filter })}
          fault={faults.filter}
          example="created:<30d state:succeeded"
        />
      </div>
      <TextInput
        label="Groups by"
        placeholder="experiment"
        value={by.text}
        error={faults.by}
        onChange={(event) => by.type(event.currentTarget.value)}
        spellCheck={false}
        w={170}
      />
      <Select
        label="Score"
        data={SCORES.map((value) => ({ value, label: SCORE_LABELS[value] }))}
        value={search.score ?? "final"}
        onChange={(score) =>
          onChange({ score: score === "final" ? undefined : (score as BenchmarksSearch["score"]) })
        }
        allowDeselect={false}
        w={180}
      />
      {(search.score ?? "final") === "final" && (
        <NumberInput
          label="Evaluations"
          min={1}
          max={MOST_LAST}
          value={search.last ?? 1}
          onChange={(last) => onChange({ last: Number(last) > 1 ? Number(last) : undefined })}
          w={92}
        />
      )}
      <Select
        label="Normalisation"
        placeholder="None: raw returns"
        data={NORMALISATIONS.map((value) => ({ value, label: NORMALISATION_LABELS[value] }))}
        value={search.normalise ?? null}
        onChange={(normalise) =>
          onChange({ normalise: (normalise ?? undefined) as BenchmarksSearch["normalise"] })
        }
        clearable
        w={250}
      />
      {takesReferences && (
        <TextInput
          className={classes.references ?? ""}
          label="Scores that become 0 and 1"
          placeholder="CartPole-v1=22,500; Acrobot-v1=-500,-80"
          value={references.text}
          error={fault}
          onChange={(event) => references.type(event.currentTarget.value)}
          spellCheck={false}
        />
      )}
    </div>
  );
}
