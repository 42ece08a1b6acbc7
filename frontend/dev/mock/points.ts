/** Points and evaluations of a mock run, computed from a learning curve. */
import type * as t from "../../src/api/types";
import { id, noise, random } from "./random.ts";

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
