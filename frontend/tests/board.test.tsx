import { describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import type { SeriesQuery, SeriesResult } from "@/api/types";
import {
  type BoardView,
  buildBoardQuery,
  buildGroupFilter,
  divideNames,
  findEvaluationDistance,
} from "@/features/runs/boardQuery";
import { readBoardSearch } from "@/features/runs/boardSearch";
import { buildPanelPlot, findLineOfRun, type PanelLook } from "@/features/runs/panelPlot";
import { computeInnerRange } from "@/features/runs/panelRange";
import { type PanelCurves, PanelStore } from "@/features/runs/panelStore";

const VIEW: BoardView = {
  runs: ["run_a", "run_b"],
  filter: "project:default",
  groupBy: [],
  axis: "env_step",
  buckets: 400,
  aggregate: "mean",
  band: "stderr",
  carry: false,
  faint: true,
  evaluations: { counter: "env_step", every: 500 },
};

describe("queries of the board", () => {
  it("groups all runs of the filter, whichever are drawn", () => {
    const query = buildBoardQuery({ ...VIEW, groupBy: ["agent"] }, ["loss/td"]);
    expect(query).toMatchObject({
      filter: "project:default",
      group_by: ["agent"],
      show_runs: false,
      statistics: ["mean", "stderr"],
      select: [
        { run_id: "run_a", series: "loss/td" },
        { run_id: "run_b", series: "loss/td" },
      ],
    });
    expect(query.runs).toBeUndefined();
    const hidden = buildBoardQuery({ ...VIEW, groupBy: ["agent"], runs: ["run_a"] }, ["loss/td"]);
    expect({ ...hidden, select: [] }).toEqual({ ...query, select: [] });
  });

  it("puts evaluations of seeds into one bucket each, and asks for them apart", () => {
    const grouped = { ...VIEW, groupBy: ["agent"] };
    expect(divideNames(grouped, ["loss/td", "evaluation/mean"])).toEqual([
      ["evaluation/mean"],
      ["loss/td"],
    ]);
    expect(buildBoardQuery(grouped, ["evaluation/mean"]).unit).toBe(500);
    const timed = buildBoardQuery({ ...grouped, axis: "wall" }, ["evaluation/mean"]);
    expect(timed.unit).toBeUndefined();
    expect(timed.buckets).toBe(60);
  });

  it("leaves evaluations their places while all are nearer than the distance of two", () => {
    const measures = [1_000, 500, null].map((evaluateEvery) => ({
      counter: "env_step" as const,
      evaluateEvery,
    }));
    const near = { env_step: 499, update: 900 };
    expect(findEvaluationDistance(measures, [near])).toBeNull();
    const far = [near, { env_step: 500, update: 1 }];
    expect(findEvaluationDistance(measures, far)).toEqual({ counter: "env_step", every: 500 });
    expect(findEvaluationDistance([], far)).toBeNull();
    const view = { ...VIEW, groupBy: ["agent"], evaluations: null };
    const { unit, buckets } = buildBoardQuery(view, ["evaluation/mean"]);
    expect([unit, buckets]).toEqual([undefined, 60]);
  });

  it("asks for no more curves than a query may have", () => {
    const runs = Array.from({ length: 700 }, (_, i) => `run_${i}`);
    const names = Array.from({ length: 7 }, (_, i) => `loss/${i}`);
    const parts = divideNames({ ...VIEW, runs }, names);
    expect(parts.flat()).toEqual(names);
    expect(Math.max(...parts.map((part) => part.length)) * runs.length).toBeLessThanOrEqual(2000);
  });

  it("finds all runs of the project where the page has no filter", () => {
    expect(buildGroupFilter("", null)).toBe("seed>=0");
    expect(buildGroupFilter("agent:dqn", "team")).toBe("project:team agent:dqn");
  });
});

it("leaves out what the URL does not say", () => {
  expect(readBoardSearch({ x: "nonsense", smooth: 3, pins: [1], scale: "log" })).toEqual({
    scale: "log",
  });
});

const GROUP = {
  name: "agent=dqn",
  series: "loss/td",
  median: [],
  stdev: [],
  min: [],
  max: [],
  low: [],
  high: [],
  carried: [0, 0, 1],
  run_ids: ["run_x", "run_a", "run_b"],
};
const CURVES: PanelCurves = {
  grid: [0, 1, 2],
  series: ["run_a", "run_b"].map((run_id, i) => ({
    run_id,
    series: "loss/td",
    mean: [-1 + i, 2 + i, 400],
    min: [],
    max: [],
    last: [],
    n: [],
    nonfinite: [],
    points: 3,
  })),
  groups: [{ ...GROUP, mean: [0, null, 5], stderr: [1, null, 2], n: [3, 0, 2] }],
};
const LOOK: PanelLook = {
  colour: (id) => (id === "run_a" ? "#aa0000" : "#00aa00"),
  label: (id) => id,
  isShown: (id) => id !== "run_x",
  aggregate: "mean",
  band: "stderr",
  smoothing: 0,
  scale: "linear",
  clip: false,
};

describe("the plot of a panel", () => {
  it("draws the band, the runs faintly and the group on top, in the colour of its first run", () => {
    const plot = buildPanelPlot(CURVES, LOOK);
    expect(plot.series.map((one) => one.label)).toEqual([
      "high",
      "low",
      "run_a",
      "run_b",
      "agent=dqn",
    ]);
    expect(plot.series[4]).toMatchObject({ id: "group run_a", color: "#aa0000" });
    // A bucket without runs is bridged; one without the statistic would be a gap.
    expect(plot.data[1]).toEqual([1, undefined, 7]);
    expect(plot.data[2]).toEqual([-1, undefined, 3]);
    expect(plot.marks).toEqual([{ x: 1, label: "n = 2" }]);
    expect(plot.note(2)).toBe("n = 2, 1 carried forward");
    expect(findLineOfRun("run_b", CURVES, LOOK.isShown)).toBe("run_b");
    expect(findLineOfRun("run_x", CURVES, LOOK.isShown)).toBe("group run_a");
  });

  it("counts what a logarithm leaves out", () => {
    const plot = buildPanelPlot({ ...CURVES, groups: [] }, { ...LOOK, scale: "log" });
    expect(plot.omitted).toBe(2);
    expect(plot.data[1]).toEqual([null, 2, 400]);
  });

  it("clips outliers, not the data", () => {
    const values = Array.from({ length: 200 }, (_, i) => (i === 7 ? 1e6 : i));
    const [low, high] = computeInnerRange([values]) ?? [0, 0];
    expect(low).toBeGreaterThanOrEqual(0);
    expect(high).toBeLessThan(220);
    expect(computeInnerRange([[3, 3, null]])).toBeNull();
  });
});

describe("the store of panels", () => {
  const answer = (query: SeriesQuery): SeriesResult => ({
    x: "env_step",
    grid: [1],
    start: 0,
    end: 2,
    width: 1,
    groups: [],
    cursor: 1,
    series: (query.names ?? []).map((series) => ({
      ...(CURVES.series[0] as PanelCurves["series"][number]),
      series,
    })),
  });

  it("asks once for all panels that are visible, and again when the range has settled", async () => {
    vi.useFakeTimers();
    const ask = vi.fn(async (query: SeriesQuery) => answer(query));
    const store = new PanelStore(ask);
    store.show(VIEW);
    for (const name of ["loss/a", "loss/b"]) store.setVisible(name, true);
    await vi.advanceTimersByTimeAsync(50);
    expect(ask.mock.calls.map(([query]) => query.names)).toEqual([["loss/a", "loss/b"]]);
    expect(store.state("loss/a").curves?.series).toHaveLength(1);
    expect(store.state("loss/c").curves).toBeNull();
    for (const end of [10, 20, 30]) {
      store.show({ ...VIEW, start: 5, end });
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(ask).toHaveBeenCalledTimes(1);
    expect(store.state("loss/a").curves).not.toBeNull();
    await vi.advanceTimersByTimeAsync(300);
    expect(ask).toHaveBeenCalledTimes(2);
    expect(ask.mock.calls[1]?.[0]).toMatchObject({ start: 5, end: 30 });
    store.close();
  });

  it("goes on without a series that the server refuses, and halves what is too large", async () => {
    vi.useFakeTimers();
    const ask = vi.fn(async (query: SeriesQuery) => {
      const names = query.names ?? [];
      if (names.length > 2) throw new ApiError({ status: 413, code: "query_too_large" });
      const at = names.indexOf("loss/gone");
      const errors = [{ pointer: `/names/${at}`, code: "unknown", message: "is no series" }];
      if (at >= 0) throw new ApiError({ status: 422, code: "unknown_series", errors });
      return answer(query);
    });
    const store = new PanelStore(ask);
    store.show(VIEW);
    for (const name of ["loss/a", "loss/gone", "loss/b", "loss/c"]) store.setVisible(name, true);
    await vi.advanceTimersByTimeAsync(100);
    for (const name of ["loss/a", "loss/b", "loss/c"])
      expect(store.state(name).curves?.series).toHaveLength(1);
    expect(store.state("loss/gone")).toMatchObject({ error: null, curves: { grid: [] } });
    store.close();
  });
});
