/** What the page of comparisons asks, and how it shows members, curves and parameters. */
import { describe, expect, it } from "vitest";
import type { ComparisonResult, SeriesResult } from "@/api/types";
import {
  buildLines,
  curveTable,
  dropEmpty,
  listMembers,
  listScores,
  runTable,
  scoreTable,
} from "@/features/compare/members";
import {
  buildAxis,
  collapseSplits,
  describeSplit,
  rankPaths,
} from "@/features/compare/parameterAxes";
import {
  buildComparisonQuery,
  buildCurvesQuery,
  isEmpty,
  readCompareSearch,
} from "@/features/compare/search";
import { compareExperiments, compareRuns, refuseComparison } from "@/lib/compare";

const member = (name: string, ...run_ids: string[]) => ({
  name,
  by: {},
  run_ids,
  environments: [],
});
const RESULT = {
  members: [member("one", "r1"), member("two", "r2", "r3")],
  parameters: ["agent.lr", "agent.name", "agent.n"],
  runs: [
    { run_id: "r1", member: 0, environment: "E", seed: 0, score: 1, values: [1e-4, "dqn", null] },
    { run_id: "r2", member: 1, environment: "E", seed: 0, score: 2, values: [1e-2, "ppo", 3] },
    { run_id: "r3", member: 1, environment: "E", seed: 1, score: null, values: [1e-3, "ppo", 4] },
  ],
} as unknown as ComparisonResult;

describe("Links", () => {
  it("lead to a comparison of what they name", () => {
    expect(compareRuns(["a", "b"])).toEqual({ runs: "a,b" });
    expect(compareExperiments(["x", "y"])).toEqual({ experiments: "x,y", by: "experiment" });
    const query = buildComparisonQuery(
      "lab",
      readCompareSearch({ ...compareExperiments(["x", "y"]) }),
    );
    expect(query.experiments).toEqual(["x", "y"]);
    expect(query.group_by).toEqual(["experiment"]);
    expect(query.filter).toBe("");
    expect(isEmpty(readCompareSearch({ by: "agent" }))).toBe(true);
  });

  it("are refused for one thing, and for more than thirty", () => {
    expect(refuseComparison(1, "runs")).toBe("Select at least 2 runs to compare them.");
    expect(refuseComparison(31, "runs")).toBe("At most 30 runs can be compared.");
    expect(refuseComparison(30, "runs")).toBeNull();
  });
});

describe("Scores", () => {
  const pendulum = { environment: "Pendulum-v1", n: 1, mean: -150, stdev: null };
  const scored = {
    members: [
      { ...member("one", "r1"), environments: [] },
      { ...member("two", "r2", "r3", "r4"), environments: [{ ...pendulum, iqm: { value: -150 } }] },
    ],
    runs: [
      { member: 0, environment: "CartPole-v1" },
      { member: 1, environment: "Pendulum-v1" },
      { member: 1, environment: "CartPole-v1" },
      { member: 1, environment: "Pendulum-v1" },
    ],
  } as unknown as ComparisonResult;

  it("of runs without evaluations have the environment of the definition", () => {
    const found = listScores(scored).map(({ index, environment, runs, scores }) => [
      index,
      environment,
      runs,
      scores?.n ?? 0,
    ]);
    expect(found).toEqual([
      [0, "CartPole-v1", 1, 0],
      [1, "Pendulum-v1", 2, 1],
      [1, "CartPole-v1", 1, 0],
    ]);
    expect(scoreTable(scored).rows).toEqual([
      ["one", 1, "CartPole-v1", 0, null, null, null, null, null],
      ["two", 2, "Pendulum-v1", 1, -150, null, -150, null, null],
      ["two", 1, "CartPole-v1", 0, null, null, null, null, null],
    ]);
  });
});

describe("Curves", () => {
  const curves = {
    grid: [10, 20, 30],
    series: [{ run_id: "r1", mean: [1, null, 3] }],
    groups: [{ name: "two", mean: [null, null, 5], low: [null, null, 4], high: [null, null, 6] }],
  } as unknown as SeriesResult;

  it("of a run are its own, of a group its mean", () => {
    const query = buildCurvesQuery(RESULT, {});
    expect(query.select).toEqual([{ run_id: "r1", series: "evaluation/mean" }]);
    expect(query.groups?.map((group) => group.run_ids)).toEqual([["r2", "r3"]]);
    const lines = buildLines(RESULT, curves, listMembers(RESULT, "light"));
    const shown = dropEmpty(curves.grid, lines);
    expect(shown.grid).toEqual([10, 30]);
    expect(curveTable(shown.grid, shown.lines, "env_step").rows).toEqual([
      ["one", 10, 1, null, null],
      ["one", 30, 3, null, null],
      ["two", 30, 5, 4, 6],
    ]);
  });
});

describe("Parameters", () => {
  it("of numbers over many powers of ten have a logarithmic axis", () => {
    expect(buildAxis(RESULT, "agent.lr")).toMatchObject({ log: true, places: [1e-4, 1e-2, 1e-3] });
    expect(buildAxis(RESULT, "agent.n")).toMatchObject({ log: false, places: [null, 3, 4] });
  });

  it("are those that differ within the environment, where no importance is known", () => {
    const runs = [
      ...RESULT.runs.slice(1).map((run) => ({ ...run, environment: "F" })),
      ...RESULT.runs.slice(0, 1),
    ];
    const result = { ...RESULT, runs, importance: [] };
    expect(rankPaths(result, "F")).toEqual(["agent.lr", "agent.n"]);
    expect(rankPaths(result, "E")).toEqual(RESULT.parameters);
  });

  it("of texts have categories", () => {
    expect(buildAxis(RESULT, "agent.name")).toMatchObject({
      categories: ["dqn", "ppo"],
      places: [0, 1, 1],
    });
  });

  it("that split the runs alike are one row, that of the agent's name", () => {
    const one = (path: string, ...same_split: string[]) => ({ path, same_split }) as never;
    const found = collapseSplits([
      one("agent.gamma", "agent.name"),
      one("agent.lr"),
      one("agent.name", "agent.gamma"),
    ]);
    expect(found.map(({ path }) => path)).toEqual(["agent.name", "agent.lr"]);
    expect(describeSplit(["a", "b"])).toBe("a, b");
    expect(describeSplit(["a", "b", "c", "d", "e"])).toBe("a, b, c and 2 more");
  });

  it("are in the file with every run's score", () => {
    expect(runTable(RESULT).rows[2]).toEqual(["r3", "two", "E", 1, 1e-3, "ppo", 4, null]);
  });
});
