/**
 * Line 15.21: a mean shows its number of seeds, and can include runs that stopped at their target.
 */

import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { listMeasures } from "@/api/definition";
import type { ExperimentDetail, Run, SeriesResult } from "@/api/types";
import { EvaluationPanel } from "@/features/experiment/EvaluationPanel";
import {
  buildEvaluationPlot,
  buildEvaluationRequest,
  findCountChanges,
  remark,
} from "@/features/experiment/evaluationPlot";
import { readExperimentSearch } from "@/features/experiment/search";

const experiment = {
  id: "cartpole-1",
  definition: { kind: "rl", loop: { env_steps: 100 }, evaluation: { every_env_steps: 10 } },
} as unknown as ExperimentDetail;
const run = (seed: number, env_step: number, state = "succeeded") =>
  ({ id: `run_${seed}`, seed, state, latest_evaluation: { env_step } }) as unknown as Run;
const RUNS = [run(0, 20), run(1, 30), run(2, 30)];

const one = (run_id: string, mean: (number | null)[]) => ({
  run_id,
  series: "evaluation/mean",
  mean,
  points: 3,
});
const RESULT = {
  x: "env_step",
  grid: [0, 10, 15, 20, 30],
  series: [one("run_0", [null, 1, null, 450, null]), one("run_1", [null, 1, null, 300, 306])],
  groups: [
    {
      name: "mean",
      series: "evaluation/mean",
      mean: [null, 1, null, 375, 306],
      high: [null, 2, null, 450, null],
      low: [null, 0, null, 300, null],
      n: [0, 2, 0, 2, 1],
      carried: [0, 0, 0, 0, 0],
    },
  ],
} as unknown as SeriesResult;

describe("the number of seeds", () => {
  it("is marked on the chart where it changes, and noted for every point", () => {
    const plot = buildEvaluationPlot(RESULT, "g", RUNS, "light", true);
    expect(plot.source.read().data[0]).toEqual([10, 20, 30]);
    expect(plot.marks).toEqual([{ x: 25, label: "n = 1" }]);
    expect([0, 2].map((i) => plot.note(i))).toEqual(["n = 2 of 2 seeds", "n = 1 of 2 seeds"]);
    expect(plot.n).toEqual({ least: 1, most: 2 });
  });

  it("includes how many seeds are carried forward", () => {
    expect(remark({ x: 0, n: 3, carried: 2 }, 3)).toBe("n = 3 of 3 seeds, 2 carried forward");
    expect(remark({ x: 0, n: 0, carried: 0 }, 3)).toBeNull();
    expect(
      findCountChanges([
        { x: 0, n: 3, carried: 0 },
        { x: 10, n: 0, carried: 0 },
        { x: 20, n: 3, carried: 1 },
      ]),
    ).toEqual([]);
  });

  it("draws no interval where it is below three", () => {
    const { data } = buildEvaluationPlot(RESULT, "g", RUNS, "light", true).source.read();
    expect(data[1]).toEqual([2, 450, null]);
    const plot = buildEvaluationPlot(RESULT, "g", RUNS, "light", true);
    expect(plot.series.filter((look) => look.edge).every((look) => look.gaps)).toBe(true);
  });
});

describe("the request of the learning curve", () => {
  it("has the visible range, and the distance of two evaluations as the unit of the buckets", () => {
    const every = listMeasures(experiment.definition).evaluateEvery;
    const zoomed = buildEvaluationRequest(experiment, RUNS, "env_step", false, {
      start: 5,
      end: 9,
    });
    expect(zoomed).toMatchObject({ start: 5, end: 9, unit: every });
    const elapsed = buildEvaluationRequest(experiment, RUNS, "relative", false);
    expect(elapsed).toMatchObject({ start: null, end: null, unit: 1, x: "relative" });
  });
});

describe("carrying forward", () => {
  it("is computed by the server, and off unless the URL enables it", () => {
    expect(
      buildEvaluationRequest(experiment, RUNS, "env_step", false).groups?.[0]?.carry_forward,
    ).toBe(false);
    expect(
      buildEvaluationRequest(experiment, RUNS, "env_step", true).groups?.[0]?.carry_forward,
    ).toBe(true);
    expect(readExperimentSearch({})).toEqual({});
    expect(readExperimentSearch({ carry: true })).toEqual({ carry: true });
  });

  const panel = (runs: readonly Run[], change = vi.fn()) => {
    vi.stubGlobal("fetch", () => new Promise(() => undefined));
    render(
      <MantineProvider env="test">
        <QueryClientProvider client={new QueryClient()}>
          <EvaluationPanel experiment={experiment} runs={runs} search={{}} change={change} />
        </QueryClientProvider>
      </MantineProvider>,
    );
    return change;
  };

  it("is offered where a seed succeeded before others", async () => {
    const change = panel(RUNS);
    await userEvent.click(screen.getByRole("switch", { name: "Carry forward" }));
    expect(change).toHaveBeenCalledWith({ carry: true });
  });

  it("is not offered where it changes nothing", () => {
    panel([run(0, 30), run(1, 30), run(2, 20, "failed")]);
    expect(screen.queryByRole("switch", { name: "Carry forward" })).toBeNull();
  });
});
