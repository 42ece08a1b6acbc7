import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Evaluation } from "@/api/types";
import { EvaluationsTab } from "@/features/run/EvaluationsTab";
import { answers, mockServer, run, show } from "./runFixtures";

beforeEach(mockServer);

describe("Line 33.1: episodes without a time limit", () => {
  const evaluation = (id: string, cut_episodes: number | null): Evaluation =>
    ({
      id,
      env_step: 100,
      source: "evaluation",
      superseded: false,
      episodes: 10,
      mean: 1,
      median: 1,
      stdev: 0,
      min: 1,
      max: 1,
      length_mean: 9,
      returns: [],
      metrics: {},
      created_at: "2026-01-01T00:00:00Z",
      cut_episodes,
    }) as unknown as Evaluation;

  const showTab = (...rows: Evaluation[]) => {
    const body = { items: rows, next_cursor: null };
    answers.set("/runs/run_1/evaluations", { status: 200, body });
    show(<EvaluationsTab run={run({})} color="#000" onOpen={() => undefined} />);
  };

  it("are counted in a column where any was cut", async () => {
    showTab(evaluation("eva_1", 3), evaluation("eva_2", 0));
    expect(await screen.findByText("Cut")).toBeVisible();
    const cells = screen.getAllByTitle(/cut after 10,000/);
    expect(cells.map((cell) => cell.textContent)).toEqual(["0", "3"]);
  });

  it("have no column where none was cut", async () => {
    showTab(evaluation("eva_1", null), evaluation("eva_2", 0));
    expect(await screen.findByText("Mean return")).toBeVisible();
    expect(screen.queryByText("Cut")).toBeNull();
  });
});
