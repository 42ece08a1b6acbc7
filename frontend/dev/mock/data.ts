/** Generated experiments for development of the dashboard without a server: `npm run mock`. */
import type * as t from "../../src/api/types";

export interface MockRun {
  view: t.RunDetail;
  points: Map<
    string,
    { env_step: number[]; update: number[]; episode: number[]; wall: number[]; value: number[] }
  >;
  evaluations: t.Evaluation[];
  log: t.LogLine[];
  skill: number;
}

let serial = 0;
export const id = (prefix: string) => `${prefix}_01kagm${String(++serial).padStart(20, "0")}`;

let state = 42;
export const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};
export const noise = () => (random() + random() + random() - 1.5) * 1.2;

const HOUR = 3_600_000;
const TRACEBACK = [
  "Traceback (most recent call last):",
  '  File "workers/loop/engine.py", line 88, in run',
  "    self._learn()",
  '  File "workers/hooks/nan_guard.py", line 31, in after_learn',
  "    raise Diverged(count)",
  "workers.core.errors.Diverged: the loss was not finite for 100 consecutive updates",
].join("\n");
const START = Date.now() - 2 * HOUR;

function definition(
  name: string,
  agent: "dqn" | "ppo",
  env: string,
  budget: number,
  rate: number,
): t.ExperimentDetail["definition"] {
  const parameters =
    agent === "dqn"
      ? {
          name: "dqn",
          learning_rate: rate,
          gamma: 0.99,
          batch_size: 64,
          buffer_size: 100_000,
          learning_starts: 1000,
          train_every: 1,
          updates_per_train: 1,
          target_update_every: 500,
          double: true,
          epsilon_start: 1,
          epsilon_end: 0.05,
          epsilon_decay_steps: 10_000,
          loss: "huber",
          max_grad_norm: 10,
          hidden_sizes: [64, 64],
          activation: "relu",
        }
      : {
          name: "ppo",
          learning_rate: rate,
          gamma: 0.99,
          gae_lambda: 0.95,
          rollout_steps: 128,
          passes: 4,
          minibatch_size: 256,
          clip_range: 0.2,
          value_coefficient: 0.25,
          entropy_coefficient: 0.01,
          normalize_advantages: true,
          target_kl: null,
          max_grad_norm: 0.5,
          hidden_sizes: [64, 64],
          activation: "tanh",
        };
  return {
    kind: "rl",
    schema_version: 2,
    name,
    notes: "",
    env: {
      id: env,
      kwargs: {},
      num_envs: agent === "ppo" ? 8 : 1,
      max_episode_steps: 500,
      vectorization: "sync",
    },
    agent: parameters,
    loop: { env_steps: budget, updates: null, episodes: null, epoch_env_steps: 1000 },
    evaluation: {
      every_env_steps: 5000,
      episodes: 20,
      steps: null,
      max_episode_steps: null,
      during_episode: true,
    },
    snapshot: { every_env_steps: 10_000, keep_last: 2, keep_best: true, memory: "full" },
    hooks: [{ name: "nan_guard", updates: 100 }],
    stop: { success_score: 475, success_evaluations: 1 },
    export: { formats: [] },
  } as unknown as t.ExperimentDetail["definition"];
}

export interface MockExperiment {
  view: t.ExperimentDetail;
  runs: MockRun[];
}

export const TOP = 500;
export const SERIES = [
  "episode/return",
  "episode/length",
  "loss/td",
  "q/mean",
  "explore/epsilon",
  "time/env_steps_per_second",
  "system/cpu_percent",
  "system/memory_mib",
] as const;

export function pointValue(series: string, run: MockRun, step: number, budget: number): number {
  const f = step / budget;
  const learned = 1 / (1 + Math.exp(-(f * 14 - 4.5 / run.skill)));
  switch (series) {
    case "episode/return":
      return Math.max(9, Math.min(TOP, 12 + learned * 470 * (0.82 + 0.3 * random())));
    case "episode/length":
      return Math.max(9, Math.min(TOP, Math.round(12 + learned * 470 * (0.82 + 0.3 * random()))));
    case "loss/td":
      return 0.02 + 0.9 * Math.exp(-f * 6) * (1 + 0.4 * noise()) + 0.02 * random();
    case "q/mean":
      return learned * 92 + noise() * 2;
    case "explore/epsilon":
      return Math.max(0.05, 1 - step / 10_000);
    case "time/env_steps_per_second":
      return 1600 + 120 * noise();
    case "system/cpu_percent":
      return 97 + 2 * noise();
    default:
      return 420 + 60 * f + noise();
  }
}

export function addPoint(
  run: MockRun,
  series: string,
  step: number,
  budget: number,
  wall: number,
): void {
  const columns = run.points.get(series) ?? {
    env_step: [],
    update: [],
    episode: [],
    wall: [],
    value: [],
  };
  run.points.set(series, columns);
  columns.env_step.push(step);
  columns.update.push(Math.max(0, step - 1000));
  columns.episode.push(Math.round(step / 120));
  columns.wall.push(wall);
  columns.value.push(pointValue(series, run, step, budget));
}

export function addEvaluation(
  run: MockRun,
  step: number,
  budget: number,
  wall: number,
): t.Evaluation {
  const f = step / budget;
  const learned = 1 / (1 + Math.exp(-(f * 14 - 4.5 / run.skill)));
  const returns = Array.from({ length: 20 }, () =>
    Math.max(9, Math.min(TOP, 10 + learned * 488 + noise() * 40 * (1.1 - learned))),
  );
  const mean = returns.reduce((a, b) => a + b, 0) / 20;
  const stdev = Math.sqrt(returns.reduce((a, b) => a + (b - mean) ** 2, 0) / 19);
  const sorted = [...returns].sort((a, b) => a - b);
  const median = ((sorted[9] ?? 0) + (sorted[10] ?? 0)) / 2;
  const low = sorted[0] ?? 0;
  const high = sorted[19] ?? 0;
  const made = {
    id: id("evl"),
    run_id: run.view.id,
    job_id: run.view.job_id ?? "",
    attempt_id: run.view.attempts[0]?.id ?? "",
    snapshot_id: null,
    env_step: step,
    update: step,
    episode: Math.round(step / 120),
    wall,
    episodes: 20,
    mean,
    median,
    stdev,
    min: low,
    max: high,
    length_mean: mean,
    length_median: median,
    length_stdev: stdev,
    length_min: low,
    length_max: high,
    returns,
    seed: 7,
    final: false,
    source: "evaluation" as const,
    metrics: {},
    superseded: false,
    created_at: new Date(wall * 1000).toISOString(),
  };
  run.evaluations.push(made);
  run.view.latest_evaluation = made;
  if (!run.view.best_evaluation || mean >= Number(run.view.best_evaluation.mean))
    run.view.best_evaluation = made;
  const curve = run.points.get("evaluation/mean") ?? {
    env_step: [],
    update: [],
    episode: [],
    wall: [],
    value: [],
  };
  run.points.set("evaluation/mean", curve);
  curve.env_step.push(step);
  curve.update.push(step);
  curve.episode.push(0);
  curve.wall.push(wall);
  curve.value.push(mean);
  return made;
}

function makeRun(
  experiment: t.ExperimentDetail,
  seed: number,
  state: t.RunState,
  fraction: number,
  budget: number,
): MockRun {
  const job = makeJob(experiment.id, state);
  const fresh = state === "queued";
  const attempt: t.Attempt = {
    id: id("att"),
    job_id: job.id,
    number: 1,
    worker_id: "wrk_a",
    worker_name: "attica",
    slot: seed % 2,
    state: state === "running" ? "running" : "ended",
    outcome:
      state === "succeeded"
        ? "succeeded"
        : state === "failed"
          ? "failed"
          : state === "paused"
            ? "paused"
            : state === "cancelled"
              ? "cancelled"
              : null,
    cause: state === "succeeded" ? "success_score" : state === "failed" ? "diverged" : null,
    failure: null,
    fences: {},
    resumed_from: {},
    resume_quality: "fresh",
    started_at: new Date(START).toISOString(),
    ended_at: state === "running" ? null : new Date(START + 0.1 * HOUR).toISOString(),
    acked_seq: 900,
  };
  const failure =
    state === "failed"
      ? {
          message:
            "The loss was not finite for 100 consecutive updates: lower agent.learning_rate.",
          exception: "Diverged",
          traceback: TRACEBACK,
        }
      : null;
  const view: t.RunDetail = {
    id: id("run"),
    experiment_id: experiment.id,
    seed,
    replicate: 0,
    snapshots: { written: 90_000, verified: state === "running" ? 80_000 : 90_000 },
    not_uploaded: null,
    state,
    cause: attempt.cause,
    failure,
    fence: 1,
    progress: {
      env_step: Math.round(fraction * budget),
      update: Math.round(fraction * budget),
      episode: Math.round((fraction * budget) / 120),
      fraction,
      env_steps_per_second: state === "running" ? 1612 : null,
    },
    resume_quality: fresh ? null : "fresh",
    latest_evaluation: null,
    best_evaluation: null,
    job_id: job.id,
    created_at: new Date(START).toISOString(),
    started_at: fresh ? null : new Date(START + 4000).toISOString(),
    finished_at: state === "running" || fresh ? null : new Date(START + 0.1 * HOUR).toISOString(),
    attempts: fresh ? [] : [attempt],
    jobs: [job],
    definition: experiment.definition,
  };
  attempt.fences = { [view.id]: 1 };
  attempt.resumed_from = { [view.id]: null };
  attempt.failure = failure;
  job.run_ids = [view.id];
  const run: MockRun = {
    view,
    points: new Map(),
    evaluations: [],
    log: [],
    skill: 0.75 + random() * 0.6,
  };
  for (let step = 0; step < fraction * budget; step += 450)
    for (const series of SERIES)
      if (step > 0 || !series.startsWith("loss"))
        addPoint(run, series, step, budget, START / 1000 + step / 1600);
  for (let step = 5000; step <= fraction * budget; step += 5000)
    addEvaluation(run, step, budget, START / 1000 + step / 1600);
  const text = [
    "palestra 0.1.0 · python 3.11.9 · torch 2.13.0",
    `run ${view.id} seed ${seed} fence 1`,
    "env CartPole-v1 × 1, action space Discrete(2)",
    "\u001b[32mtraining begins\u001b[0m",
  ];
  for (const e of run.evaluations)
    text.push(`evaluation at ${e.env_step}: mean ${Number(e.mean).toFixed(1)} over 20 episodes`);
  if (failure) text.push(...String(failure.traceback).split("\n"));
  run.log = fresh
    ? []
    : text.map((line, i) => ({
        n: i + 1,
        attempt_id: attempt.id,
        stream: line.startsWith("Trace") || line.startsWith("  File") ? "stderr" : "stdout",
        wall: START / 1000 + i,
        text: line,
      }));
  return run;
}

function makeJob(experiment: string, state: t.RunState): t.Job {
  return {
    id: id("job"),
    experiment_id: experiment,
    run_ids: [],
    schedule: "train",
    state,
    cause: null,
    failure: null,
    waiting: state === "queued" ? "Both slots of pool default are busy." : null,
    not_uploaded: null,
    position: null,
    pool: "default",
    priority: 0,
    resources: {
      compile: "auto",
      pack: "off",
      gpus: 0,
      cpu_threads: 1,
      memory_mib: null,
      evaluation: "inline",
    },
    limits: { wall_seconds: null, stall_seconds: 1800, grace_seconds: 120, max_attempts: 20 },
    evaluate: null,
    afresh: false,
    allow_code_change: false,
    attempts: state === "queued" ? 0 : 1,
    worker_id: state === "running" ? "wrk_a" : null,
    created_at: new Date(START).toISOString(),
    created_by: "admin",
    started_at: null,
    finished_at: null,
  };
}

export function makeExperiment(
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
