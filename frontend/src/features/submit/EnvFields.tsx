import { Autocomplete } from "@mantine/core";
import { useMemo } from "react";
import type { Catalogue } from "@/api/types";
import { formatCount } from "@/lib/format";
import { EnvironmentNotice } from "./EnvironmentNotice";
import { Fields } from "./Fields";
import { findFault } from "./faults";
import { useForm, useMember } from "./form";
import classes from "./Submit.module.css";
import type { Schema } from "./schema";

const PATH = ["definition", "env"] as const;
const MOST_SHOWN = 60;

/** The environment and how many copies of it are stepped. */
export function EnvFields({ schema }: { schema: Schema }) {
  const { catalogue, faults, isFrozen } = useForm();
  const [id, change] = useMember([...PATH, "id"]);
  const names = useMemo(
    () => (catalogue?.environments ?? []).map((one) => one.id).sort(),
    [catalogue],
  );
  return (
    <>
      <div className={classes.lead}>
        <Autocomplete
          label="Environment"
          placeholder="CartPole-v1"
          data={names}
          limit={MOST_SHOWN}
          value={typeof id === "string" ? id : ""}
          disabled={isFrozen}
          spellCheck={false}
          error={findFault(faults, [...PATH, "id"])}
          onChange={(text) => change(text)}
        />
        <p className={classes.explained}>{describe(catalogue, id)}</p>
      </div>
      <Fields
        schema={schema}
        path={PATH}
        primary={["num_envs", "max_episode_steps", "vectorization"]}
        without={["id"]}
      />
      <EnvironmentNotice />
    </>
  );
}

/** What the workers of the pool know of an environment. */
function describe(catalogue: Catalogue["catalogue"] | null, id: unknown): string {
  if (catalogue === null)
    return "A Gymnasium environment. No worker of the pool has said yet which ones it knows.";
  const found = catalogue.environments.find((one) => one.id === id);
  if (found === undefined)
    return `The pool's workers know ${formatCount(catalogue.environments.length)} environments: type to search.`;
  const { observation_space: seen, action_space: acted, max_episode_steps: limit } = found;
  const parts = [
    seen && `observations: ${describeSpace(seen)}`,
    acted && `actions: ${describeSpace(acted)}`,
    limit && `episodes of at most ${formatCount(limit)} steps`,
  ].filter(Boolean);
  const text = parts.join(" · ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

type Space = NonNullable<Catalogue["catalogue"]["environments"][number]["action_space"]>;

function describeSpace(space: Space): string {
  if (space.n !== null && space.n !== undefined) return `${space.kind}, ${formatCount(space.n)}`;
  const shape = (space.shape ?? []).join("×");
  return shape ? `${space.kind} of ${shape}` : space.kind;
}
