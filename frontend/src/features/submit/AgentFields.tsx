import { Select } from "@mantine/core";
import { Message } from "@/ui/Message";
import { Fields } from "./Fields";
import { findFault } from "./faults";
import { type Form, useForm, useMember } from "./form";
import classes from "./Submit.module.css";
import { chooseVariant, listOptions, resolve, type Schema } from "./schema";

const PATH = ["definition", "agent"] as const;

/** The algorithm and its hyperparameters. */
export function AgentFields({ schema }: { schema: Schema }) {
  const form = useForm();
  const [agent, change] = useMember(PATH);
  const [env] = useMember(["definition", "env", "id"]);
  const name = readName(agent);
  const union = resolve(form.root, schema);
  const options = listOptions(form.root, union);
  const listed = options.find((one) => one.discriminator !== undefined) ?? {};
  const variant = chooseVariant(form.root, listed, agent);
  const shape = variant ?? options.find((one) => one.properties !== undefined) ?? {};
  const groups = groupAgents(form, Object.keys(listed.discriminator?.mapping ?? {}), String(env));
  const described = (variant?.description ?? describeRegistered(form, name)).split("\n\n");
  return (
    <>
      <div className={classes.lead}>
        <Select
          label="Algorithm"
          data={groups}
          value={name}
          searchable
          allowDeselect={false}
          disabled={form.isFrozen}
          nothingFoundMessage="No such agent"
          maxDropdownHeight={320}
          error={findFault(form.faults, [...PATH, "name"]) ?? findFault(form.faults, PATH, true)}
          onChange={(next) => next !== null && next !== name && change({ name: next })}
        />
        <p className={classes.explained}>
          <Message text={described.join(" ")} />
        </p>
      </div>
      <Fields schema={shape} path={PATH} without={["name"]} />
    </>
  );
}

function readName(agent: unknown): string | null {
  const name = (agent as { name?: unknown } | null | undefined)?.name;
  return typeof name === "string" ? name : null;
}

function describeRegistered({ catalogue }: Form, name: string | null): string {
  const found = catalogue?.agents.find((one) => one.name === name);
  return found?.code
    ? `Registered on the workers by ${found.code.distribution} ${found.code.version}.`
    : "";
}

/** The agents, those first that fit the actions of the environment. */
function groupAgents({ catalogue }: Form, builtin: readonly string[], env: string) {
  const offered = catalogue?.agents ?? [];
  const actions = catalogue?.environments.find((one) => one.id === env)?.action_space?.kind;
  const names = [...new Set([...builtin, ...offered.map((one) => one.name)])].sort();
  const isFit = (name: string) => {
    const known = offered.find((one) => one.name === name);
    if (catalogue === null) return true;
    return known !== undefined && (actions === undefined || acts(known.action_spaces, actions));
  };
  const fit = names.filter(isFit);
  const others = names.filter((name) => !isFit(name));
  const label = actions === undefined ? "Agents" : `For ${actions} actions`;
  return [
    { group: label, items: fit },
    ...(others.length > 0
      ? [{ group: "For other actions, or not on the pool's workers", items: others }]
      : []),
  ];
}

function acts(spaces: readonly string[], actions: string): boolean {
  return spaces.includes(actions);
}
