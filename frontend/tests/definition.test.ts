import { describe, expect, it } from "vitest";
import { type Definition, reading, scoreOf } from "@/api/definition";
import type { Evaluation } from "@/api/types";
import { chartedSources } from "@/features/run/evaluationCurves";

const RL = {
  kind: "rl",
  loop: { env_steps: 5000 },
  evaluation: { every_env_steps: 500 },
  snapshot: { every_env_steps: 700 },
} as unknown as Definition;
const supervised = (evaluation: object) =>
  ({ kind: "supervised", loop: { updates: 90 }, evaluation, snapshot: { every_updates: 30 } }) as unknown as Definition;
const made = (changes: object) =>
  ({ mean: 12, metrics: {}, source: "evaluation", ...changes }) as unknown as Evaluation;

describe("what a definition's kind means", () => {
  it("counts env steps and shows returns in reinforcement learning", () => {
    const words = reading(RL);
    expect(words).toMatchObject({ counter: "env_step", series: "evaluation/mean", budget: 5000, evaluateEvery: 500 });
    expect(scoreOf(made({}), words)).toBe(12);
  });

  it("counts updates and shows the metric that is the score where it is supervised", () => {
    const words = reading(supervised({ metric: "accuracy", goal: "maximize", every_updates: 10 }));
    expect(words).toMatchObject({
      counter: "update",
      series: "evaluation/accuracy",
      sign: 1,
      budget: 90,
      saveEvery: 30,
    });
    expect(scoreOf(made({ metrics: { accuracy: 0.9 } }), words)).toBe(0.9);
    expect(reading(supervised({ metric: "loss", goal: "minimize" })).sign).toBe(-1);
  });
});

describe("curves of evaluations", () => {
  it("are the return of episodes, or every metric of a model, by source", () => {
    expect(chartedSources([], undefined)).toEqual([]);
    expect(chartedSources([made({})], undefined)).toEqual([{ of: "evaluation", curves: ["mean"] }]);
    const rows = [made({ metrics: { loss: 1, accuracy: 0 } }), made({ metrics: { loss: 1 }, source: "train_data" })];
    expect(chartedSources(rows, undefined)).toEqual([
      { of: "evaluation", curves: ["accuracy", "loss"] },
      { of: "train_data", curves: ["loss"] },
    ]);
    expect(chartedSources(rows, "^evaluation/acc")).toEqual([{ of: "evaluation", curves: ["accuracy"] }]);
  });
});
