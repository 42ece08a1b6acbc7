/** The table of groups and environments, its launches, and the queries behind the page. */
import { describe, expect, it } from "vitest";
import type { Run, StatisticsResult } from "@/api/types";
import { buildCells, describePooling, launchSearch } from "@/features/benchmarks/cells";
import {
  buildFiguresQuery,
  MOST_COMPARED,
  readBenchmarksSearch,
  readFields,
  readReferences,
} from "@/features/benchmarks/search";
import {
  cellTable,
  describeEstimate,
  printAggregates,
  printCells,
} from "@/features/benchmarks/tables";
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
  experiments: 1,
  differing_fields: [] as string[],
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
    expect(cellTable(table).rows[1]).toEqual([
      ...["agent=dqn", "Cart", 2, 2, 20, 1.5, 20, null, null],
      ...[1, ""],
    ]);
    expect(printCells(table).rows[0]).toEqual(["agent=dqn", "−80", "20.0 ± 1.5"]);
  });
});

describe("Cells that pool experiments", () => {
  const pooled = {
    ...scores("Cart", 3, 20, 1.5),
    experiments: 2,
    differing_fields: ["loop.env_steps", "agent.gamma", "agent.clip", "agent.lr"],
  };
  const groups = [{ name: "agent=dqn", run_ids: ["r1", "r2"], environments: [pooled] }];
  const result = { groups, environments: ["Cart"] } as unknown as StatisticsResult;
  const table = buildCells(RUNS.slice(0, 2), result, ["agent"]);

  it("say which fields differ, on the page, in CSV and in LaTeX", () => {
    const sentence = "2 experiments: loop.env_steps, agent.gamma, agent.clip and 1 more";
    expect(describePooling({ scores: pooled })).toBe(sentence);
    expect(cellTable(table).rows[0]?.slice(-2)).toEqual([
      2,
      "loop.env_steps agent.gamma agent.clip agent.lr",
    ]);
    expect(printCells(table).rows[0]).toEqual(["agent=dqn", `20.0 ± 1.5 (${sentence})`]);
  });

  it("say so when definitions are equal, and nothing of one experiment", () => {
    const equal = { ...pooled, differing_fields: [] };
    expect(describePooling({ scores: equal })).toBe("2 experiments: equal definitions");
    expect(describePooling({ scores: scores("Cart", 2, 20, 1.5) })).toBeNull();
    expect(describePooling({ scores: null })).toBeNull();
  });
});

describe("Rows by experiment", () => {
  const runs = [
    run("r1", "ppo", "Cart", 0, "ppo-cart-1f"),
    run("r2", "ppo", "Cart", 1, "ppo-cart-1f"),
    run("r3", "dqn", "Cart", 0, "dqn-cart-2e"),
    run("r4", "zoo", "Acro", 0, "zoo-acro-3d"),
  ];
  const groups = [
    {
      name: "experiment=ppo-cart-1f",
      run_ids: ["r1", "r2"],
      environments: [scores("Cart", 2, 20, 1.5)],
      aggregates: {},
      scores: [1, 2],
    },
  ];
  const result = { groups, environments: ["Acro", "Cart"] } as unknown as StatisticsResult;
  const table = buildCells(runs, result, ["experiment"]);

  it("are named without hashes and ordered by environment", () => {
    expect(table.rows.map((row) => row.label)).toEqual(["zoo-acro", "dqn-cart", "ppo-cart"]);
    expect(printCells(table).rows[2]).toEqual(["ppo-cart", null, "20.0 ± 1.5"]);
    expect(cellTable(table).rows.at(-1)?.[0]).toBe("experiment=ppo-cart-1f");
    expect(printAggregates(result, table.names).rows).toEqual([["ppo-cart", 2]]);
  });

  it("launch seeds of their environment only", () => {
    const [acro] = table.rows;
    if (!acro?.cells[0] || !acro.cells[1]) throw new Error("no cells");
    expect(launchSearch(table, acro, acro.cells[0])).toEqual({ from: "zoo-acro-3d", seeds: "1" });
    expect(launchSearch(table, acro, acro.cells[1])).toBeNull();
  });
});

describe("The page's query", () => {
  it("stays within the project and leaves runs without a score out", () => {
    const query = buildFiguresQuery("lab", readBenchmarksSearch({ filter: "agent:dqn" }), 2);
    expect(query.filter).toBe("agent:dqn project:lab");
    expect(query.group_by).toEqual(["experiment"]);
    expect(query.parts).toContain("improvement");
    expect(buildFiguresQuery("lab", {}, MOST_COMPARED + 1).parts).not.toContain("improvement");
    expect(query.normalisation).toBeNull();
    expect(query.score?.missing).toBe("leave_out");
  });

  it("takes tables with own references besides, and the extremes without", () => {
    const search = { normalise: "atari-human-1", references: "Cart = 22, 500; A=B=-1,1" };
    expect(buildFiguresQuery("lab", readBenchmarksSearch(search), 2).normalisation).toEqual({
      kind: "table",
      table: "atari-human-1",
      references: { Cart: { random: 22, reference: 500 }, "A=B": { random: -1, reference: 1 } },
    });
    const extremes = readBenchmarksSearch({ ...search, normalise: "min_max" });
    expect(buildFiguresQuery("lab", extremes, 2).normalisation).toEqual({
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

  it("groups by experiment unless other fields are named", () => {
    expect(readFields(undefined)).toEqual(["experiment"]);
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
