/** The table of groups and environments, its launches, and the queries behind the page. */
import { describe, expect, it } from "vitest";
import type { Run, StatisticsResult } from "@/api/types";
import { buildCells, launchSearch } from "@/features/benchmarks/cells";
import {
  buildFiguresQuery,
  readBenchmarksSearch,
  readFields,
  readReferences,
} from "@/features/benchmarks/search";
import { cellTable, describeEstimate, printCells } from "@/features/benchmarks/tables";
import { readNewExperimentSearch, readSeeds } from "@/features/submit/search";
import { takeEnvironment } from "@/features/submit/useOrigin";

const run = (
  id: string,
  agent: string,
  env: string,
  seed: number,
  experiment = `${agent}-${env}`,
) => ({ id, experiment_id: experiment, seed, values: { agent, env } }) as unknown as Run;
const RUNS = [
  run("r1", "dqn", "Cart", 0),
  run("r2", "dqn", "Cart", 1),
  run("r3", "dqn", "Acro", 0),
  run("r4", "ppo", "Cart", 0),
];
const scores = (environment: string, n: number, mean: number, stdev: number | null) => ({
  environment,
  n,
  mean,
  median: mean,
  stdev,
  iqm: { value: mean, low: null, high: null },
});
const RESULT = {
  groups: [
    {
      name: "agent=dqn",
      run_ids: ["r1", "r2", "r3"],
      environments: [scores("Cart", 2, 20, 1.5), scores("Acro", 1, -80, null)],
    },
  ],
  environments: ["Acro", "Cart"],
} as unknown as StatisticsResult;

describe("Cells", () => {
  const table = buildCells(RUNS, RESULT, ["agent"]);

  it("hold the runs of every group, also of groups without a score", () => {
    expect(table.environments).toEqual(["Acro", "Cart"]);
    expect(table.rows.map((row) => [row.name, row.runs.length])).toEqual([
      ["agent=dqn", 3],
      ["agent=ppo", 1],
    ]);
    expect(table.rows[1]?.cells.map((cell) => [cell.scores, cell.runs.length])).toEqual([
      [null, 0],
      [null, 1],
    ]);
    expect(table.rows[0]?.cells[0]?.missing).toEqual([1]);
  });

  it("launch their missing seeds, or the group's experiment in the environment", () => {
    const [dqn, ppo] = table.rows;
    if (!dqn?.cells[0] || !dqn.cells[1] || !ppo?.cells[0]) throw new Error("no cells");
    expect(launchSearch(table, dqn, dqn.cells[0])).toEqual({ from: "dqn-Acro", seeds: "1" });
    expect(launchSearch(table, dqn, dqn.cells[1])).toBeNull();
    expect(launchSearch(table, ppo, ppo.cells[0])).toEqual({
      from: "ppo-Cart",
      env: "dqn-Acro",
      seeds: "0,1",
    });
  });

  it("are a table of the server's numbers", () => {
    expect(cellTable(table).rows[1]).toEqual(["agent=dqn", "Cart", 2, 2, 20, 1.5, 20, null, null]);
    expect(printCells(table).rows[0]).toEqual(["agent=dqn", "−80", "20.0 ± 1.5"]);
  });
});

describe("The page's query", () => {
  it("stays within the project and leaves runs without a score out", () => {
    const query = buildFiguresQuery("lab", readBenchmarksSearch({ filter: "agent:dqn" }));
    expect(query.filter).toBe("agent:dqn project:lab");
    expect(query.group_by).toEqual(["agent"]);
    expect(query.normalisation).toBeNull();
    expect(query.score?.missing).toBe("leave_out");
  });

  it("takes tables with own references besides, and the extremes without", () => {
    const search = { normalise: "atari-human-1", references: "Cart = 22, 500; A=B=-1,1" };
    expect(buildFiguresQuery("lab", readBenchmarksSearch(search)).normalisation).toEqual({
      kind: "table",
      table: "atari-human-1",
      references: { Cart: { random: 22, reference: 500 }, "A=B": { random: -1, reference: 1 } },
    });
    const extremes = readBenchmarksSearch({ ...search, normalise: "min_max" });
    expect(buildFiguresQuery("lab", extremes).normalisation).toEqual({
      kind: "min_max",
      table: null,
      references: {},
    });
  });

  it("says which reference cannot be read", () => {
    for (const wrong of ["Cart", "Cart=1", "Cart=1,2,3", "=1,2", "Cart=a,b", "Cart=,"])
      expect(readReferences(wrong).fault).toContain("must be ENVIRONMENT=RANDOM,REFERENCE");
    expect(readReferences(" ; ").fault).toBeNull();
  });

  it("groups by the agent unless other fields are named", () => {
    expect(readFields(undefined)).toEqual(["agent"]);
    expect(readFields("agent.gamma, seed,seed")).toEqual(["agent.gamma", "seed"]);
    expect(readBenchmarksSearch({ score: "best", last: 0, normalise: "x" })).toEqual({});
  });
});

describe("Launched cells", () => {
  it("begin the form with seeds and the environment of another experiment", () => {
    expect(readNewExperimentSearch({ from: "a", env: "b", seeds: "3,4" })).toEqual({
      from: "a",
      env: "b",
      seeds: "3,4",
    });
    expect(readSeeds("3, 4,x,-1,3")).toEqual([3, 4]);
    expect(readSeeds("x")).toBeNull();
    const own = { definition: { kind: "rl", env: { id: "Cart" }, agent: { name: "dqn" } } };
    const other = { definition: { kind: "rl", env: { id: "Acro" }, agent: { name: "ppo" } } };
    expect(takeEnvironment(own as never, other as never).definition).toEqual({
      kind: "rl",
      env: { id: "Acro" },
      agent: { name: "dqn" },
    });
  });
});

describe("Estimates", () => {
  it("have the digits that their interval allows", () => {
    expect(describeEstimate({ value: 0.8512, low: 0.801, high: 0.9 })).toBe("0.851 [0.801, 0.900]");
    expect(describeEstimate({ value: 0.8512, low: null, high: null })).toBe("0.8512");
    expect(describeEstimate(undefined)).toBeNull();
  });
});
