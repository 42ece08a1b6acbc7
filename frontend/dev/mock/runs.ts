/** Mock runs in a state, with their job, attempt, curves and log. */
import type * as t from "../../src/api/types";
import { addEvaluation, addPoint, type MockRun, SERIES } from "./points.ts";
import { id, random } from "./random.ts";

export const HOUR = 3_600_000;
const TRACEBACK = [
  "Traceback (most recent call last):",
  '  File "workers/loop/engine.py", line 88, in run',
  "    self._learn()",
  '  File "workers/hooks/nan_guard.py", line 31, in after_learn',
  "    raise Diverged(count)",
  "workers.core.errors.Diverged: the loss was not finite for 100 consecutive updates",
].join("\n");
export const START = Date.now() - 2 * HOUR;

export function makeRun(
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
    slots: [seed % 2],
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
    project: "default",
    created_by: "admin",
    experiment_id: experiment.id,
    seed,
    replicate: 0,
    snapshots: { written: 90_000, verified: state === "running" ? 80_000 : 90_000 },
    not_uploaded: null,
    findings: [],
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
  job.seeds = [seed];
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
    project: "default",
    experiment_id: experiment,
    run_ids: [],
    seeds: [],
    schedule: "train",
    state,
    cause: null,
    failure: null,
    waiting: state === "queued" ? "Both slots of pool default are busy." : null,
    not_uploaded: null,
    position: null,
    estimate: null,
    pool: "default",
    priority_class: "normal",
    priority: 0,
    resources: {
      compile: "auto",
      pack: "off",
      gpus: 0,
      cpu_threads: 1,
      memory_mib: null,
      evaluation: "inline",
      simulator: "auto",
    },
    limits: { wall_seconds: null, stall_seconds: 1800, grace_seconds: 120, max_attempts: 20 },
    evaluate: null,
    afresh: false,
    allow_code_change: false,
    after: [],
    on: "success",
    attempts: state === "queued" ? 0 : 1,
    worker_id: state === "running" ? "wrk_a" : null,
    created_at: new Date(START).toISOString(),
    created_by: "admin",
    started_at: null,
    finished_at: null,
  };
}
