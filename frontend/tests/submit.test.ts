/** The submission form's logic: fields of the schema, YAML both ways, places of faults, seeds. */
import { describe, expect, it } from "vitest";
import { ApiError } from "@/api/client";
import { type Change, listChanges } from "@/features/submit/changes";
import { dropDraft, keepDraft, readDraft } from "@/features/submit/draft";
import {
  changeEnvironment,
  type EnvironmentState,
  listLeft,
  listStaying,
  putBack,
  removeStaying,
  replaceEnvironment,
} from "@/features/submit/environment";
import { describePlace, findFault, listFaults } from "@/features/submit/faults";
import { nameMember, showFallback } from "@/features/submit/form";
import { parseIntegers, parseNumber, parseTexts } from "@/features/submit/numbers";
import {
  chooseVariant,
  findUnion,
  listFields,
  pruneDefaults,
  resolve,
  type Schema,
} from "@/features/submit/schema";
import {
  changeMember,
  readMember,
  readText,
  wrapDefinition,
  writeText,
} from "@/features/submit/text";
import { writeClone } from "@/features/submit/useOrigin";
import { formatSeeds, parseSeeds, proposeSeeds } from "@/lib/seeds";
import openapi from "../openapi.json";

const api = openapi as unknown as { components: { schemas: Record<string, Schema> } };
const root = {
  ...api,
  ...api.components.schemas.Submission,
} as unknown as Schema;
const definition = root.properties?.definition as Schema;
const part = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const field = (schema: string, name: string) =>
  listFields(root, part(schema)).find((one) => one.name === name);

describe("the fields of the schema", () => {
  it.each([
    ["DqnParameters", "learning_rate", "number"],
    ["DqnParameters", "batch_size", "integer"],
    ["DqnParameters", "double", "switch"],
    ["DqnParameters", "loss", "choice"],
    ["DqnParameters", "hidden_sizes", "integers"],
    ["DqnParameters", "prioritized", "object"],
    ["RlDefinition", "hooks", "variants"],
    ["RlDefinition", "name", "text"],
    ["ExportSpec", "formats", "choices"],
    ["JobOptions", "after", "texts"],
    ["JobOptions", "then", "choices"],
    ["Resources", "pack", "choiceOrInteger"],
    ["Sb3Parameters", "parameters", "yaml"],
    ["EnvDefinition", "kwargs", "yaml"],
  ])("%s.%s is of the kind %s", (schema, name, kind) => {
    expect(field(schema, name)?.kind).toBe(kind);
  });

  it("have a control for every member but free objects", () => {
    const free = Object.keys(api.components.schemas).flatMap((name) =>
      /(Parameters|Definition|Spec|Resources|Limits|Options|Replay|Preprocessing)$/.test(name)
        ? listFields(root, part(name))
            .filter((one) => one.kind === "yaml")
            .map((one) => `${name}.${one.name}`)
        : [],
    );
    const known = /\.(kwargs|params|parameters|agent|definition)$/;
    expect(free.filter((name) => !known.test(name))).toEqual([]);
  });

  it("leave out constants, and know defaults, null and descriptions", () => {
    expect(field("DqnParameters", "name")).toBeUndefined();
    expect(field("DqnParameters", "max_grad_norm")).toMatchObject({
      kind: "number",
      isNullable: true,
      fallback: 10,
      description: expect.stringContaining("gradient norm"),
    });
    expect(field("LoopSpec", "env_steps")).toMatchObject({ isNullable: true, fallback: null });
  });

  it("are those of the variant that the value names", () => {
    const rl = chooseVariant(root, resolve(root, definition), { kind: "rl" });
    expect(Object.keys(rl?.properties ?? {})).toContain("agent");
    expect(chooseVariant(root, resolve(root, definition), { kind: "other" })).toBeNull();
    const agent = resolve(root, rl?.properties?.agent as Schema);
    expect(findUnion(root, agent, { name: "ppo" }).properties).toHaveProperty("clip_range");
    expect(findUnion(root, agent, { name: "of_a_team" }).properties).toHaveProperty("parameters");
  });

  it("have readable names and show their default", () => {
    expect(nameMember("cpu_threads")).toBe("CPU threads");
    expect(nameMember("memory_mib")).toBe("Memory (MiB)");
    expect(showFallback([64, 64])).toBe("64, 64");
    expect(showFallback(null)).toBe("none");
    expect(showFallback(undefined)).toBe("");
  });
});

const TEXT = `# Balances a pole.
definition:
  kind: rl
  name: Pole
  agent:
    name: ppo
    gamma: 0.98 # discount
    hidden_sizes: [64, 64]
  loop:
    env_steps: 10000
options:
  seeds: [0, 1]
`;

describe("the text", () => {
  it("is read as YAML 1.2, of which JSON is a part", () => {
    const { document } = readText(TEXT);
    expect(readMember(document, ["definition", "loop", "env_steps"])).toBe(10_000);
    expect(readText("a: no").document).toEqual({ a: "no" });
    expect(readText('{"a": [1, 2]}').document).toEqual({ a: [1, 2] });
  });

  it("keeps comments and order when a member changes", () => {
    const next = changeMember(TEXT, ["definition", "agent", "gamma"], 0.5);
    expect(next).toBe(TEXT.replace("0.98", "0.5"));
    const more = changeMember(next, ["definition", "agent", "clip_range"], 0.1);
    expect(more).toContain("    hidden_sizes: [64, 64]\n    clip_range: 0.1\n");
    const list = changeMember(TEXT, ["options", "seeds"], [0, 1, 2]);
    expect(list).toContain("seeds: [0, 1, 2]");
  });

  it("makes the objects on the way to a member, and removes those left empty", () => {
    const path = ["options", "resources", "gpus"];
    const next = changeMember(TEXT, path, 1);
    expect(readMember(readText(next).document, path)).toBe(1);
    expect(changeMember(next, path, undefined)).toBe(TEXT);
    const none = changeMember("definition:\noptions:\n", ["definition", "loop", "updates"], 5);
    expect(readText(none).document).toEqual({
      definition: { loop: { updates: 5 } },
      options: null,
    });
  });

  it("changes items of lists", () => {
    const hooks = changeMember(TEXT, ["definition", "hooks"], [{ name: "video" }]);
    const next = changeMember(hooks, ["definition", "hooks", 0, "max_frames"], 50);
    expect(readMember(readText(next).document, ["definition", "hooks"])).toEqual([
      { name: "video", max_frames: 50 },
    ]);
  });

  it.each([
    ["a: [1", 1],
    ["a: 1\nb: {c: 1\n", 2],
    ["a: 1\na: 2\n", 2],
    ["a: .nan", 1],
    ["x: 1\na: 12345678901234567890", 2],
  ])("that cannot be read names its line: %j", (text, line) => {
    const reading = readText(text);
    expect(reading.document).toBeNull();
    expect(reading.problem).not.toBe("");
    expect(reading.line).toBeGreaterThanOrEqual(line);
  });

  it("must be an object, and one with too many aliases is refused", () => {
    expect(readText("").problem).toContain("definition");
    expect(readText("- 1").problem).not.toBeNull();
    const rows = Array.from(
      { length: 9 },
      (_, i) => `a${i + 1}: &a${i + 1} [${"*a0, ".replaceAll("a0", `a${i}`).repeat(9)}]`,
    );
    expect(readText(["a0: &a0 [1]", ...rows].join("\n")).document).toBeNull();
  });

  it("of a definition alone gets its options beside it", () => {
    expect(readText(wrapDefinition("kind: rl\nname: x\n")).document).toEqual({
      definition: { kind: "rl", name: "x" },
    });
    expect(wrapDefinition(TEXT)).toBe(TEXT);
  });

  it("survives being written and read", () => {
    const document = { definition: { name: "no", a: [1, 2], b: null, c: 1e-8 }, options: {} };
    expect(readText(writeText(document)).document).toEqual(document);
  });
});

describe("a clone", () => {
  const full = {
    kind: "rl",
    schema_version: 2,
    name: "Pole",
    notes: "",
    env: { id: "CartPole-v1", num_envs: 1, kwargs: {} },
    agent: { name: "dqn", learning_rate: 0.01, gamma: 0.99, max_grad_norm: 10 },
    loop: { env_steps: 500, updates: null },
    hooks: [{ name: "nan_guard", updates: 100 }],
  };

  it("has the definition without its defaults, and the seeds and options of the runs", () => {
    const job = {
      schedule: "train",
      pool: "gpu",
      priority_class: "normal",
      priority: 0,
      resources: { gpus: 1, cpu_threads: 1, pack: "off" },
      limits: { wall_seconds: null, stall_seconds: 1800, grace_seconds: 120, max_attempts: 20 },
    };
    const text = writeClone(
      root,
      { definition: full } as never,
      [{ seed: 3 }, { seed: 1 }],
      job as never,
    );
    const { document } = readText(text);
    expect(readMember(document, ["definition", "agent"])).toEqual({
      name: "dqn",
      learning_rate: 0.01,
    });
    expect(readMember(document, ["definition", "kind"])).toBe("rl");
    expect(readMember(document, ["definition", "hooks"])).toBeUndefined();
    expect(document?.options).toMatchObject({ seeds: [1, 3], pool: "gpu", resources: { gpus: 1 } });
    expect(document?.options).not.toHaveProperty("priority_class");
  });

  it("keeps a null that is not the default", () => {
    const changed = { ...full, agent: { ...full.agent, max_grad_norm: null } };
    const pruned = pruneDefaults(root, findUnion(root, definition, changed), changed);
    expect(readMember(pruned, ["agent", "max_grad_norm"])).toBeNull();
  });
});

describe("the changes of a clone", () => {
  const original = {
    kind: "rl",
    schema_version: 2,
    name: "Pole",
    notes: "",
    env: { id: "CartPole-v1", num_envs: 1, kwargs: {} },
    agent: { name: "dqn", learning_rate: 0.01, gamma: 0.99, max_grad_norm: 10 },
    loop: { env_steps: 500, updates: null },
    hooks: [{ name: "nan_guard", updates: 100 }],
  };
  const pruned = pruneDefaults(root, findUnion(root, definition, original), original) as object;
  const show = ({ place, before, now }: Change) => `${place}: ${before} → ${now}`;
  const list = (changes: object, from: object = original) =>
    listChanges(root, from, { ...pruned, ...changes }).map(show);

  it("are none for defaults, written out or left out", () => {
    expect(list({})).toEqual([]);
    expect(list(original)).toEqual([]);
    expect(list({ hooks: [{ name: "nan_guard" }], evaluation: { episodes: 10 } })).toEqual([]);
    expect(list({ name: "Other", notes: "x", stop: { success_score: null } })).toEqual([]);
  });

  it("show a default that is typed over another value as typed", () => {
    const agent = { name: "dqn", learning_rate: 0.0003 };
    const slow = { ...original, agent: { ...original.agent, learning_rate: 0.5 } };
    expect(list({ agent }, slow)).toEqual(["agent.learning_rate: 0.5 → 0.0003"]);
    expect(list({ agent: { name: "dqn" } }, slow)).toEqual([
      `agent.learning_rate: 0.5 → ${field("DqnParameters", "learning_rate")?.fallback}`,
    ]);
    expect(list({ loop: { env_steps: 20_000 } })).toEqual(["loop.env_steps: 500 → 20000"]);
  });

  it("compare values, not their text", () => {
    const kwargs = (value: unknown) => ({ env: { ...original.env, kwargs: { mode: value } } });
    const from = { ...original, ...kwargs(null) };
    expect(list(kwargs(null), from)).toEqual([]);
    expect(list(kwargs("none"), from)).toEqual(['env.kwargs.mode: null → "none"']);
    expect(list(kwargs("1"), { ...original, ...kwargs(1) })).toEqual(['env.kwargs.mode: 1 → "1"']);
  });

  it("name hooks, whatever their place", () => {
    const guard = { name: "nan_guard", updates: 100 };
    const video = { name: "video" };
    expect(list({ hooks: [guard, video] })).toEqual(["hooks: nan_guard → nan_guard, video"]);
    expect(list({ hooks: [video, guard] })).toEqual(["hooks: nan_guard → video, nan_guard"]);
    expect(
      list({
        hooks: [
          { ...video, max_frames: 50 },
          { ...guard, updates: 5 },
        ],
      }),
    ).toEqual([
      "hooks: nan_guard → video, nan_guard",
      "hooks.video.max_frames: unset → 50",
      "hooks.nan_guard.updates: 100 → 5",
    ]);
    expect(list({ hooks: [] })).toEqual(["hooks: nan_guard → none"]);
  });

  it("are those that are written, where the agent is another one", () => {
    const changes = list({ agent: { name: "ppo", gamma: 0.9, clip_range: 0.3 } });
    expect(changes).toContain("agent.name: dqn → ppo");
    expect(changes).toContain("agent.gamma: 0.99 → 0.9");
    expect(changes).toContain("agent.clip_range: unset → 0.3");
    expect(changes.filter((one) => /epsilon|gae_lambda/.test(one))).toEqual([]);
  });

  it("show an object that is switched on, and one that is switched off", () => {
    const agent = { ...original.agent, prioritized: {} };
    const [on] = list({ agent });
    expect(on).toMatch(/^agent.prioritized: none → alpha: /);
    const [off] = list({ agent: original.agent }, { ...original, agent });
    expect(off).toMatch(/^agent.prioritized: alpha: .* → none$/);
  });
});

describe("what a preset says about its environment", () => {
  const ORIGIN = `# Balances a pole.
definition:
  kind: rl
  name: CartPole PPO
  notes: Stops at 475.
  env:
    id: CartPole-v1
    num_envs: 8
    max_episode_steps: 500
  agent:
    name: ppo
  loop:
    env_steps: 10000
  stop:
    success_score: 475.0
    success_evaluations: 2
`;
  const ID = ["definition", "env", "id"];
  const state = (text = ORIGIN, ...typed: string[]): EnvironmentState => ({
    origin: ORIGIN,
    text,
    typed: new Set(typed),
  });
  const move = (id: string, text = ORIGIN, ...typed: string[]) =>
    changeEnvironment(state(text, ...typed), ID, id);
  const read = (text: string) => readText(text).document?.definition;
  const listPlaces = (members: readonly { path: readonly (string | number)[] }[]) =>
    members.map(({ path }) => path.slice(1).join("."));

  it("leaves with the environment, and everything else stays", () => {
    const text = move("Pendulum-v1");
    expect(read(text)).toEqual({
      kind: "rl",
      name: "Pendulum PPO",
      env: { id: "Pendulum-v1", num_envs: 8 },
      agent: { name: "ppo" },
      loop: { env_steps: 10_000 },
      stop: { success_evaluations: 2 },
    });
    expect(text).not.toContain("Balances a pole");
    expect(listPlaces(listLeft(state(text)))).toEqual([
      "notes",
      "env.max_episode_steps",
      "stop.success_score",
    ]);
    expect(listStaying(state(text))).toEqual([]);
  });

  it("comes back with the environment, also if its ID is typed letter by letter", () => {
    let text = ORIGIN;
    for (const id of ["CartPole-v", "CartPole", "", "P", "Pendulum-v1"]) text = move(id, text);
    expect(read(text)).toMatchObject({ name: "Pendulum PPO", env: { id: "Pendulum-v1" } });
    for (const id of ["", "CartPole-v1"]) text = move(id, text);
    expect(read(text)).toEqual(read(ORIGIN));
    expect(text).toContain("# Balances a pole.");
    expect(listLeft(state(text))).toEqual([]);
  });

  it("stays where the user typed it, the same value or another", () => {
    const score = "definition/stop/success_score";
    expect(read(move("Pendulum-v1", ORIGIN, score))).toMatchObject({
      stop: { success_score: 475 },
    });
    const other = ORIGIN.replace("475.0", "-200").replace("Stops at 475.", "Mine");
    const text = move("Pendulum-v1", other);
    expect(read(text)).toMatchObject({ notes: "Mine", stop: { success_score: -200 } });
    expect(listPlaces(listLeft(state(text)))).toEqual(["env.max_episode_steps"]);
    const named = ORIGIN.replace("CartPole PPO", "Swing up");
    expect(read(move("Pendulum-v1", named))).toMatchObject({ name: "Swing up" });
  });

  it("can be put back, and is named while it is still there", () => {
    const back = putBack(state(move("Pendulum-v1")));
    expect(read(back)).toMatchObject({
      env: { id: "Pendulum-v1", max_episode_steps: 500 },
      stop: { success_score: 475 },
    });
    const paths = ["notes", "env/max_episode_steps", "stop/success_score"];
    const typed = paths.map((path) => `definition/${path}`);
    expect(listStaying(state(back, ...typed))).toEqual([]);
    const written = ORIGIN.replace("id: CartPole-v1", "id: Pendulum-v1");
    expect(listPlaces(listStaying(state(written)))).toHaveLength(3);
    expect(read(removeStaying(state(written)))).not.toHaveProperty("stop.success_score");
  });

  it("is that of the input function in supervised training", () => {
    const origin = `definition:
  kind: supervised
  name: Digits
  notes: Reads digits.
  train_input:
    name: digits
    params:
      images: 4000
  stop:
    success_score: 0.9
`;
    const path = ["definition", "train_input", "name"];
    const text = changeEnvironment({ origin, text: origin, typed: new Set() }, path, "letters");
    expect(read(text)).toEqual({
      kind: "supervised",
      name: "Digits",
      train_input: { name: "letters" },
    });
  });

  it("is exchanged where a clone takes the environment of another experiment", () => {
    const pole = { ...(read(ORIGIN) as object) };
    const pendulum = {
      kind: "rl",
      name: "Swing",
      notes: "Other notes",
      env: { id: "Pendulum-v1", num_envs: 2 },
      stop: { success_score: -200 },
    };
    expect(replaceEnvironment(pole, pendulum)).toEqual({
      kind: "rl",
      name: "Pendulum PPO",
      env: { id: "Pendulum-v1", num_envs: 2 },
      agent: { name: "ppo" },
      loop: { env_steps: 10_000 },
      stop: { success_score: -200, success_evaluations: 2 },
    });
    expect(replaceEnvironment(pendulum, pole)).not.toHaveProperty("notes");
  });
});

describe("faults", () => {
  const faults = [
    { pointer: "/definition/agent/gamma", message: "must be at most 1" },
    { pointer: "/definition/env/kwargs/a~1b", message: "must be a number" },
    { pointer: "/options", message: "seeds must be different" },
  ];

  it("are shown at the field of their pointer, or of the member above that has none", () => {
    expect(findFault(faults, ["definition", "agent", "gamma"])).toBe("Must be at most 1");
    expect(findFault(faults, ["definition", "agent", "gam"])).toBeUndefined();
    expect(findFault(faults, ["definition", "env", "kwargs"])).toBe("Must be a number");
    expect(findFault(faults, ["definition", "env"], true)).toBeUndefined();
  });

  it("name their place, without the part of the document", () => {
    expect(describePlace("/definition/agent/gamma")).toBe("agent.gamma");
    expect(describePlace("/definition/env/kwargs/a~1b")).toBe("env.kwargs.a/b");
    expect(describePlace("/options/pool")).toBe("options.pool");
  });

  it("of an error are the server's, or its message", () => {
    const refused = new ApiError({ status: 422, detail: "x", errors: faults } as never);
    expect(listFaults(refused)).toEqual(faults);
    const full = new ApiError({ status: 409, detail: "The quota is used up." });
    expect(listFaults(full)).toEqual([{ pointer: "", message: "The quota is used up." }]);
    expect(listFaults(null)).toEqual([]);
  });
});

describe("typed values", () => {
  it("are numbers in the notation of people and programs", () => {
    expect(parseNumber("1e-3", false)).toBe(0.001);
    expect(parseNumber(" 20_000 ", true)).toBe(20_000);
    expect(parseNumber("2e4", true)).toBe(20_000);
    expect(parseNumber("", true)).toBeUndefined();
    expect(["1e", "0,5", "1.5", "Infinity"].map((one) => parseNumber(one, true))).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(parseIntegers("64, 32")).toEqual([64, 32]);
    expect(parseIntegers("64,")).toBeNull();
    expect(parseTexts(" job_1, job_2,")).toEqual(["job_1", "job_2"]);
    expect(parseTexts(" ")).toBeUndefined();
  });

  it("are seeds, with ranges", () => {
    expect(parseSeeds("0-2, 7")).toEqual([0, 1, 2, 7]);
    expect(formatSeeds([0, 1, 2, 7, 9, 10])).toBe("0-2, 7, 9, 10");
    expect(parseSeeds("3-1")).toContain("backwards");
    expect(parseSeeds("1, 1")).toContain("once");
    expect(parseSeeds("4294967296")).toContain("at most");
    expect(parseSeeds("0-99999")).toContain("10,000");
    expect(parseSeeds("a")).toContain("numbers");
    expect(proposeSeeds(3, [0, 2])).toEqual([1, 3, 4]);
  });
});

describe("the draft", () => {
  it("is kept per project and beginning until it is dropped", () => {
    keepDraft("lab", "new", { text: "a: 1", origin: "a: 0" });
    expect(readDraft("lab", "new")).toEqual({ text: "a: 1", origin: "a: 0" });
    expect(readDraft("other", "new")).toBeNull();
    dropDraft("lab", "new");
    expect(readDraft("lab", "new")).toBeNull();
    window.sessionStorage.setItem("palestra.draft lab new", "{broken");
    expect(readDraft("lab", "new")).toBeNull();
  });
});
