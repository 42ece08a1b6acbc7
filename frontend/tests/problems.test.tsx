/** Line 15.22: the failures of a run at the top of its page and in lists. */
import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Experiment } from "@/api/types";
import { experimentColumns } from "@/features/experiments/columns";
import { RunProblems } from "@/features/run/RunProblems";
import { attempt, FAILURE, job, mockServer, run, show } from "./runFixtures";

beforeEach(mockServer);

describe("Line 15.22: the page of a run", () => {
  it("begins with cause, message and traceback of its failure", () => {
    show(<RunProblems run={run({})} />);
    expect(screen.getByText("failed: user exception")).toBeVisible();
    expect(screen.getByRole("alert")).toHaveTextContent("The environment raised: KeyError.");
    expect(screen.getByText("File env.py, line 3")).toBeInTheDocument();
  });

  it("shows that the cause is unknown", () => {
    show(<RunProblems run={run({ cause: null, failure: null })} />);
    expect(screen.getByText("failed: for an unknown reason")).toBeVisible();
  });

  it("gives the cause of an attempt that is retried, and none of a requested pause", () => {
    const lost = attempt({ ended_at: "2026-01-01T00:00:00Z", cause: "worker_lost" });
    show(
      <RunProblems run={run({ state: "queued", cause: null, failure: null, attempts: [lost] })} />,
    );
    expect(
      screen.getByText("attempt 1 ended: worker lost; the next one waits for a slot"),
    ).toBeVisible();
  });

  it("shows nothing about requested ends", () => {
    const paused = attempt({ ended_at: "2026-01-01T00:00:00Z", cause: "user" });
    show(
      <RunProblems
        run={run({ state: "running", cause: null, failure: null, attempts: [paused] })}
      />,
    );
    expect(screen.queryByRole("status")).toBeNull();
  });

  it("shows a failed job until a later one of its schedule succeeds", () => {
    const failed = job({
      id: "job_2",
      schedule: "export",
      cause: "user_exception",
      failure: FAILURE,
    });
    const done = run({ state: "succeeded", cause: "budget", failure: null });
    show(<RunProblems run={{ ...done, jobs: [job({ state: "succeeded" }), failed] }} />);
    expect(screen.getByText("export failed: user exception")).toBeVisible();
    const again = job({ id: "job_3", schedule: "export", state: "succeeded" });
    show(<RunProblems run={{ ...done, jobs: [job({ state: "succeeded" }), failed, again] }} />);
    expect(screen.getAllByText("export failed: user exception")).toHaveLength(1);
  });
});

describe("Line 15.22: lists", () => {
  it("show the cause where there is no score", () => {
    const failures = [
      { cause: "user_exception", message: "No such argument.", runs: 2, run_id: "run_1" },
    ];
    const cell = experimentColumns("light").find((column) => column.id === "score")?.cell;
    show(cell?.({ latest_evaluation: null, failures } as unknown as Experiment));
    expect(screen.getByText("No such argument.")).toBeVisible();
  });
});
