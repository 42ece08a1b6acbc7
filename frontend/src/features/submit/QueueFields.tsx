import { NumberInput, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { poolsQuery } from "@/api/queueQueries";
import { TRAINING } from "@/api/schedules";
import { formatPlural } from "@/lib/format";
import { formatSeeds, parseSeeds, proposeSeeds } from "@/lib/seeds";
import { Fields } from "./Fields";
import { findFault } from "./faults";
import { useForm, useMember } from "./form";
import classes from "./Submit.module.css";
import { resolve, type Schema } from "./schema";

const PATH = ["options"] as const;
const MOST = 10_000;
const ELSEWHERE = ["seeds", "schedule", "pool", "priority_class", "resources", "limits"];

const CLASSES: Readonly<Record<string, string>> = {
  interactive: "interactive: at most 30 minutes, one at a time",
  urgent: "urgent: before normal, for maintainers",
  normal: "normal",
  idle: "idle: when no other class needs the slot",
};

/** Seeds, pool, class, resources and limits: what is no part of the experiment's identity. */
export function QueueFields({ schema }: { schema: Schema }) {
  const { root, faults, isFrozen } = useForm();
  const options = resolve(root, schema).properties ?? {};
  const [schedule, setSchedule] = useMember([...PATH, "schedule"]);
  const [group, setGroup] = useMember([...PATH, "priority_class"]);
  const has = (name: string) => options[name] !== undefined;
  return (
    <>
      <div className={classes.grid}>
        <SeedFields />
        <PoolField />
        <Select
          label="Class"
          description="An earlier class starts before a later one"
          inputWrapperOrder={["label", "input", "error", "description"]}
          data={Object.entries(CLASSES).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
          value={typeof group === "string" ? group : "normal"}
          disabled={isFrozen}
          error={findFault(faults, [...PATH, "priority_class"])}
          onChange={(next) => setGroup(next === "normal" ? undefined : next)}
        />
        <Select
          label="Schedule"
          description="What the jobs do; test runs one update and one evaluation"
          inputWrapperOrder={["label", "input", "error", "description"]}
          data={[...TRAINING].map((value) => ({ value, label: value.replaceAll("_", " ") }))}
          allowDeselect={false}
          value={typeof schedule === "string" ? schedule : "train"}
          disabled={isFrozen}
          error={findFault(faults, [...PATH, "schedule"])}
          onChange={(next) => setSchedule(next === "train" ? undefined : next)}
        />
      </div>
      {has("resources") && (
        <Fields
          schema={options.resources as Schema}
          path={[...PATH, "resources"]}
          primary={["gpus", "cpu_threads", "pack"]}
        />
      )}
      <Fields schema={schema} path={PATH} without={ELSEWHERE} />
      {has("limits") && (
        <Fields schema={options.limits as Schema} path={[...PATH, "limits"]} primary={[]} />
      )}
    </>
  );
}

/** The number of seeds, or the seeds themselves. */
function SeedFields() {
  const { faults, isFrozen } = useForm();
  const [value, change] = useMember([...PATH, "seeds"]);
  const seeds = Array.isArray(value) ? value.map(Number) : [0];
  const shown = formatSeeds(seeds);
  const [typed, setTyped] = useState(shown);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    setTyped((text) => (String(parseSeeds(text)) === String(parseSeeds(shown)) ? text : shown));
    setProblem(null);
  }, [shown]);
  const type = (text: string) => {
    setTyped(text);
    const found = parseSeeds(text);
    setProblem(typeof found === "string" ? found : null);
    if (typeof found !== "string") change(found);
  };
  return (
    <>
      <NumberInput
        label="Number of runs"
        description="One run per seed; several show how much luck a result is"
        inputWrapperOrder={["label", "input", "error", "description"]}
        min={1}
        max={MOST}
        clampBehavior="strict"
        value={seeds.length}
        disabled={isFrozen}
        onChange={(count) => Number(count) >= 1 && change(proposeSeeds(Number(count), []))}
      />
      <TextInput
        label="Seeds"
        description={`${formatPlural(seeds.length, "seed")}; numbers and ranges`}
        inputWrapperOrder={["label", "input", "error", "description"]}
        placeholder="0-2, 7"
        value={typed}
        disabled={isFrozen}
        error={problem ?? findFault(faults, [...PATH, "seeds"])}
        onChange={(event) => type(event.currentTarget.value)}
      />
    </>
  );
}

function PoolField() {
  const { faults, isFrozen } = useForm();
  const [value, change] = useMember([...PATH, "pool"]);
  const { data: pools } = useQuery(poolsQuery);
  const chosen = typeof value === "string" ? value : "default";
  const names = (pools ?? []).map((one) => one.name);
  const found = pools?.find((one) => one.name === chosen);
  return (
    <Select
      label="Pool"
      description={
        found === undefined
          ? "The workers that train it"
          : `${formatPlural(found.free_slots, "free slot")}, ${formatPlural(found.queued, "job")} waiting`
      }
      inputWrapperOrder={["label", "input", "error", "description"]}
      data={names.includes(chosen) ? names : [chosen, ...names]}
      allowDeselect={false}
      value={chosen}
      disabled={isFrozen}
      error={findFault(faults, [...PATH, "pool"])}
      onChange={(next) => next !== null && change(next)}
    />
  );
}
