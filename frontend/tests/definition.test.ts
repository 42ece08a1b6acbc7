import { describe, expect, it } from "vitest";
import { type Definition, listMeasures, readScore, scoresDrawn } from "@/api/definition";
import type { Evaluation, ExperimentDetail } from "@/api/types";
import { selectIdentity } from "@/features/experiment/DefinitionPanel";
import { listChartedSources } from "@/features/run/evaluationCurves";
import { diff } from "@/lib/jsonDiff";

const RL = {
  kind: "rl",
  loop: { env_steps: 5000 },
  evaluation: { every_env_steps: 500 },
  snapshot: { every_env_steps: 700 },
} as unknown as Definition;
const supervised = (evaluation: object) =>
  ({
    kind: "supervised",
    loop: { updates: 90 },
    evaluation,
    snapshot: { every_updates: 30 },
  }) as unknown as Definition;
const made = (changes: object) =>
  ({ mean: 12, metrics: {}, source: "evaluation", ...changes }) as unknown as Evaluation;

describe("the parts that an experiment's ID is computed from", () => {
  const definition = { ...RL, name: "Pole", notes: "", schema_version: 2 } as unknown as Definition;
  const of = (code: object) =>
    selectIdentity({ definition, code: code as unknown as ExperimentDetail["code"] });

  it("are its definition, and the code of agents and environments outside Palestra", () => {
    expect(of({ kind: "builtin" })).not.toHaveProperty("code");
    const own = { kind: "distribution", distribution: "lab", version: "1", digest: "ab" };
    expect(of({ kind: "builtin", environment: own })).toHaveProperty(
      "code.environment.digest",
      "ab",
    );
    const changed = diff(
      of({ ...own, kind: "entrypoint" }),
      of({ ...own, kind: "entrypoint", digest: "cd" }),
    );
    expect(changed.filter((line) => line.status !== "same").map((line) => line.pointer)).toEqual([
      "/code/digest",
    ]);
  });
});

describe("the measures of a definition", () => {
  it("are env steps and returns in reinforcement learning", () => {
    const measures = listMeasures(RL);
    expect(measures).toMatchObject({
      counter: "env_step",
      series: "evaluation/mean",
      budget: 5000,
      evaluateEvery: 500,
    });
    expect(readScore(made({}), measures)).toBe(12);
  });

  it("are updates and the metric of the score in supervised learning", () => {
    const measures = listMeasures(
      supervised({ metric: "accuracy", goal: "maximize", every_updates: 10 }),
    );
    expect(measures).toMatchObject({
      counter: "update",
      series: "evaluation/accuracy",
      sign: 1,
      budget: 90,
      saveEvery: 30,
    });
    expect(readScore(made({ metrics: { accuracy: 0.9 } }), measures)).toBe(0.9);
    expect(listMeasures(supervised({ metric: "loss", goal: "minimize" })).sign).toBe(-1);
  });
});

describe("curves of evaluations", () => {
  it("are the return of episodes, or every metric of a model, by source", () => {
    expect(listChartedSources([], undefined)).toEqual([]);
    expect(listChartedSources([made({})], undefined)).toEqual([
      { of: "evaluation", curves: ["mean"] },
    ]);
    const rows = [
      made({ metrics: { loss: 1, accuracy: 0 } }),
      made({ metrics: { loss: 1 }, source: "train_data" }),
    ];
    expect(listChartedSources(rows, undefined)).toEqual([
      { of: "evaluation", curves: ["accuracy", "loss"] },
      { of: "train_data", curves: ["loss"] },
    ]);
    expect(listChartedSources(rows, "^evaluation/acc")).toEqual([
      { of: "evaluation", curves: ["accuracy"] },
    ]);
  });

  it("are apart for drawn actions, which only a stochastic definition scores", () => {
    const rows = (["stochastic", "evaluation", "greedy"] as const).map((source) =>
      made({ source }),
    );
    expect(listChartedSources(rows, undefined).map(({ of }) => of)).toEqual([
      "evaluation",
      "stochastic",
      "greedy",
    ]);
    const policies = ["greedy", "both", "stochastic"].map((policy) =>
      scoresDrawn({ ...RL, evaluation: { policy } } as unknown as Definition),
    );
    expect(policies).toEqual([false, false, true]);
    expect(scoresDrawn(RL as unknown as Definition)).toBe(false);
  });
});
