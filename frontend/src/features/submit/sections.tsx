import type { ReactNode } from "react";
import { Panel } from "@/ui/Page";
import { AgentFields } from "./AgentFields";
import { EnvFields } from "./EnvFields";
import { EnvironmentNotice } from "./EnvironmentNotice";
import { Fields } from "./Fields";
import { useForm } from "./form";
import { QueueFields } from "./QueueFields";
import classes from "./Submit.module.css";
import { chooseVariant, resolve, type Schema } from "./schema";

/** The members of a definition that a section has besides the object it is about. */
interface Part {
  name: string;
  primary?: readonly string[];
}

interface Section {
  title: string;
  about?: string;
  parts: readonly Part[];
}

const BUDGET = "A run ends at the first bound that it reaches";
const SECTIONS: Readonly<Record<string, readonly Section[]>> = {
  rl: [
    {
      title: "Budget",
      about: BUDGET,
      parts: [
        { name: "loop", primary: ["env_steps", "updates", "episodes"] },
        { name: "stop", primary: ["success_score", "success_evaluations"] },
      ],
    },
    {
      title: "Evaluation",
      about: "During training, without exploration",
      parts: [{ name: "evaluation", primary: ["every_env_steps", "episodes"] }],
    },
    {
      title: "Snapshots and export",
      about: "The last state is always saved",
      parts: [
        { name: "snapshot", primary: ["every_env_steps", "keep_last"] },
        { name: "export", primary: ["formats"] },
      ],
    },
  ],
  supervised: [
    {
      title: "Model and data",
      parts: [{ name: "estimator" }, { name: "train_input" }, { name: "evaluation_input" }],
    },
    {
      title: "Budget",
      about: BUDGET,
      parts: [
        { name: "loop" },
        { name: "stop", primary: ["success_score", "success_evaluations"] },
      ],
    },
    { title: "Evaluation", parts: [{ name: "evaluation" }] },
    {
      title: "Snapshots and export",
      parts: [
        { name: "snapshot", primary: ["every_updates", "keep_last"] },
        { name: "export", primary: ["formats"] },
      ],
    },
  ],
};

const HEADED = ["estimator", "train_input", "evaluation_input"];
const HEADS: Readonly<Record<string, string>> = {
  estimator: "Model function",
  train_input: "Training input",
  evaluation_input: "Evaluation input",
};

/** The sections of the form for the kind of the definition. */
export function Sections() {
  const { root, document } = useForm();
  const union = resolve(root, root.properties?.definition ?? {});
  const definition = chooseVariant(root, union, document.definition);
  const kind = String((document.definition as { kind?: unknown } | undefined)?.kind ?? "");
  const members = definition?.properties ?? {};
  const sections = SECTIONS[kind] ?? [];
  return (
    <>
      {members.env && (
        <Group title="Environment">
          <EnvFields schema={members.env} />
        </Group>
      )}
      {members.agent && (
        <Group title="Agent">
          <AgentFields schema={members.agent} />
        </Group>
      )}
      {sections.map((section) => (
        <Group key={section.title} title={section.title} about={section.about}>
          {section.parts.map((part) => (
            <PartFields key={part.name} part={part} schema={members[part.name]} />
          ))}
        </Group>
      ))}
      {definition !== null && (
        <Group title="Hooks" about="They look on, and may end a run or film it">
          <Fields schema={{ properties: { hooks: members.hooks ?? {} } }} path={["definition"]} />
        </Group>
      )}
      <Group title="Runs and queue" about="No part of the experiment's ID">
        <QueueFields schema={root.properties?.options ?? {}} />
      </Group>
    </>
  );
}

function PartFields({ part, schema }: { part: Part; schema: Schema | undefined }) {
  if (schema === undefined) return null;
  const fields = (
    <Fields
      schema={schema}
      path={["definition", part.name]}
      {...(part.primary && { primary: part.primary })}
    />
  );
  if (!HEADED.includes(part.name)) return fields;
  return (
    <fieldset className={classes.nested}>
      <legend>{HEADS[part.name]}</legend>
      {fields}
      {part.name === "train_input" && <EnvironmentNotice />}
    </fieldset>
  );
}

function Group(props: { title: string; about?: string | undefined; children: ReactNode }) {
  return (
    <Panel title={props.title} aside={props.about && <span className="faint">{props.about}</span>}>
      <div className={classes.section}>{props.children}</div>
    </Panel>
  );
}
