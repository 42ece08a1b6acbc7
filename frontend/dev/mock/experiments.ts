/** Generated experiments for development of the dashboard without a server: `npm run mock`. */
import type * as t from "../../src/api/types";
import { definition } from "./definition.ts";
import type { MockRun } from "./points.ts";
import { random } from "./random.ts";
import { HOUR, makeRun, START } from "./runs.ts";

export interface MockExperiment {
  view: t.ExperimentDetail;
  runs: MockRun[];
}

function makeExperiment(
  name: string,
  agent: "dqn" | "ppo",
  env: string,
  budget: number,
  rate: number,
  states: [t.RunState, number][],
): MockExperiment {
  const document = definition(name, agent, env, budget, rate);
  const slug = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const hash = Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, "0")
    .repeat(8);
  const view: t.ExperimentDetail = {
    id: `${slug}-${hash.slice(0, 16)}`,
    project: "default",
    name,
    notes: "",
    kind: "rl",
    agent,
    env,
    schema_version: 2,
    definition_hash: hash,
    code: { kind: "builtin" },
    state: "running",
    runs: {},
    latest_evaluation: null,
    created_at: new Date(START - random() * 40 * HOUR).toISOString(),
    created_by: "admin",
    archived_at: null,
    definition: document,
  } as t.ExperimentDetail;
  const runs = states.map(([state, fraction], seed) =>
    makeRun(view, seed, state, fraction, budget),
  );
  const made = { view, runs };
  summarise(made);
  return made;
}

export function summarise({ view, runs }: MockExperiment): void {
  const counts: Record<string, number> = {};
  for (const run of runs) counts[run.view.state] = (counts[run.view.state] ?? 0) + 1;
  view.runs = counts as t.Experiment["runs"];
  const failed = runs.filter((run) => run.view.state === "failed");
  view.failures = failed.slice(0, 1).map(({ view: first }) => ({
    cause: first.cause ?? "diverged",
    message: first.failure?.message ?? "",
    runs: failed.length,
    run_id: first.id,
  }));
  view.state =
    (["running", "queued", "paused", "failed", "cancelled", "succeeded"] as const).find(
      (one) => counts[one],
    ) ?? "queued";
  const means = runs.flatMap((run) =>
    run.view.latest_evaluation ? [Number(run.view.latest_evaluation.mean)] : [],
  );
  const mean = means.reduce((a, b) => a + b, 0) / means.length;
  const stdev =
    means.length > 1
      ? Math.sqrt(means.reduce((a, b) => a + (b - mean) ** 2, 0) / (means.length - 1))
      : null;
  view.latest_evaluation = means.length
    ? {
        runs: means.length,
        metric: null,
        mean,
        stdev,
        min: Math.min(...means),
        max: Math.max(...means),
      }
    : null;
}

const many = Array.from({ length: 100 }, (_, i): [t.RunState, number] =>
  i < 61
    ? ["succeeded", 0.7 + random() * 0.3]
    : i < 64
      ? ["failed", random() * 0.5]
      : i < 72
        ? ["running", 0.2 + random() * 0.7]
        : ["queued", 0],
);
export const experiments: MockExperiment[] = [
  makeExperiment("CartPole DQN", "dqn", "CartPole-v1", 150_000, 1e-3, [
    ["running", 0.46],
    ["running", 0.41],
    ["queued", 0],
  ]),
  makeExperiment("CartPole DQN slow learning rate", "dqn", "CartPole-v1", 150_000, 3e-4, [
    ["succeeded", 1],
    ["succeeded", 1],
    ["succeeded", 1],
    ["failed", 0.3],
    ["paused", 0.6],
  ]),
  makeExperiment(
    "CartPole PPO",
    "ppo",
    "CartPole-v1",
    100_000,
    3e-4,
    Array.from({ length: 5 }, () => ["succeeded", 1]),
  ),
  makeExperiment("Acrobot PPO baseline", "ppo", "Acrobot-v1", 300_000, 3e-4, [
    ["succeeded", 1],
    ["cancelled", 0.4],
    ["succeeded", 1],
  ]),
  makeExperiment("CartPole DQN hundred seeds", "dqn", "CartPole-v1", 60_000, 1e-3, many),
  makeExperiment("LunarLander PPO", "ppo", "LunarLander-v3", 1_000_000, 2.5e-4, [
    ["queued", 0],
    ["queued", 0],
    ["queued", 0],
  ]),
];
