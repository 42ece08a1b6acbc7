/** Line 15.20: every number on a page was measured and is labelled. */
import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Experiment, SeriesResult } from "@/api/types";
import { experimentColumns } from "@/features/experiments/columns";
import { formatScore } from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import { LatestValues } from "@/live/latest";
import { ProgressBar } from "@/ui/ProgressBar";
import { ScoreText } from "@/ui/ScoreText";

const shown = (element: React.ReactNode) =>
  render(<div data-testid="x">{element}</div>).getByTestId("x");

describe("a score", () => {
  it("has a spread with its kind and n where it is over several", () => {
    const text = shown(
      <ScoreText mean={482.3} spread={12.1} kind="se" n={3} of="run" />,
    ).textContent;
    expect(text).toBe("482 ± 12 sen = 3 runs");
  });

  it.each([
    ["for one value, whatever is given", 12.1, 1],
    ["where it is unknown", null, 3],
    ["where it is not a number", "NaN", 3],
  ])("has no ± %s", (_, spread, n) => {
    expect(
      shown(<ScoreText mean={401.9} spread={spread} kind="sd" n={n} of="episode" />),
    ).not.toHaveTextContent("±");
    expect(screen.getByText("401.9")).toBeVisible();
  });

  it("cannot be made without the kind of its spread and n", () => {
    // @ts-expect-error: `kind` is missing
    const unnamed = <ScoreText mean={1} spread={1} n={2} of="run" />;
    // @ts-expect-error: `n` is missing
    const uncounted = <ScoreText mean={1} spread={1} kind="sd" of="run" />;
    expect([unnamed, uncounted]).toHaveLength(2);
  });

  it.each([
    [1, null, "401.9n = 1 run"],
    [3, 12.1, "402 ± 12 sdn = 3 runs"],
  ])("of an experiment with %d runs has the spread %s in the list", (runs, stdev, text) => {
    const latest_evaluation = { runs, stdev, metric: null, mean: 401.9, min: 380, max: 410 };
    const failures: Experiment["failures"] = [];
    const cell = experimentColumns("light").find((column) => column.id === "score")?.cell;
    expect(shown(cell?.({ latest_evaluation, failures } as Experiment)).textContent).toBe(text);
  });

  it.each([
    [0.0034, 0.0002, "0.00340"],
    [0.0034, 0, "0.0034"],
    [486.96, null, "487"],
    [-0.0004, 0.2, "0.00"],
  ])("of %d with spread %s is not rounded to something else", (mean, spread, text) => {
    expect(formatScore(mean, spread)).toBe(text);
  });
});

describe("progress", () => {
  it("Line 15.21: is complete where a run stopped at its target", () => {
    const stopped = computeProgress({
      state: "succeeded",
      cause: "success_score",
      fraction: 0.28672,
    });
    expect(stopped).toEqual({
      share: 1,
      text: "target",
      hint: "Stopped at its target score after 28 % of its budget",
      tone: "done",
    });
  });

  it.each([
    ["running", null, 0.28, 0.28, "28 %", "active"],
    ["failed", "diverged", 0.28, 0.28, "28 %", "idle"],
    ["succeeded", "budget", 1, 1, "done", "done"],
    ["running", null, null, null, "–", "active"],
  ])("of a run that is %s (%s) at %s", (state, cause, fraction, share, text, tone) => {
    expect(computeProgress({ state, cause, fraction })).toMatchObject({ share, text, tone });
  });

  it("is not 0 % where it is unknown", () => {
    render(<ProgressBar share={null} tone="active" text="–" />);
    expect(screen.getByRole("progressbar")).not.toHaveAttribute("aria-valuenow");
  });
});

describe("Line 15.24: the latest value of a curve", () => {
  const series = (last: (number | null)[]) =>
    [{ series: "a/b", last }] as unknown as SeriesResult["series"];
  const points = (...value: (number | string)[]) => ({
    fence: 1,
    seq: 1,
    env_step: [],
    update: [],
    episode: [],
    wall: [],
    value,
  });

  it("is the newest measured value: not a bucket's mean, and not replaced by an older list", () => {
    const latest = new LatestValues();
    expect(latest.of("a/b")).toBeNull();
    latest.list([{ name: "a/b", last_value: 3 }]);
    expect(latest.of("a/b")).toBe(3);
    latest.history(series([1, 7, null]));
    latest.list([{ name: "a/b", last_value: 3 }]);
    expect(latest.of("a/b")).toBe(7);
    latest.points("a/b", points(8, "NaN"));
    expect(latest.of("a/b")).toBeNaN();
  });
});
