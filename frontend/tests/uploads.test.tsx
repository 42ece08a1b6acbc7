/** Lines 15.1 and 15.4: snapshots and results that the server has not stored. */
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { RunFacts } from "@/features/run/RunFacts";
import { RunProblems } from "@/features/run/RunProblems";
import { answers, job, mockServer, run, sent, show } from "./runFixtures";

beforeEach(mockServer);

describe("Lines 15.1 and 15.4: what the server has not stored", () => {
  const backlog = {
    files: 2,
    size: 2048,
    problem: "The disk of the server is full.",
    delivering: true,
    message: "…",
  };

  it("is shown with its cause, and can be given up", async () => {
    answers.set("/jobs/job_1:give-up", { status: 200, body: job({}) });
    show(
      <RunProblems
        run={run({ state: "running", failure: null, jobs: [job({ not_uploaded: backlog })] })}
      />,
    );
    expect(screen.getByText("result not uploaded yet")).toBeVisible();
    expect(screen.getByText("The disk of the server is full.")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Give up…" }));
    await userEvent.click(await screen.findByRole("button", { name: "Give it up" }));
    expect(sent.map((one) => one.url)).toEqual(["/jobs/job_1:give-up"]);
  });

  it.each([
    ["running", 100, 40, "snapshot 80 steps behind"],
    ["running", 100, null, "no snapshot on the server yet"],
    ["paused", 120, 120, "snapshot up to date"],
  ] as const)(
    "of a run that is %s, written at %d and stored at %s, is shown",
    (state, written, verified, text) => {
      const progress = {
        env_step: 120,
        update: 1,
        episode: 1,
        fraction: null,
        env_steps_per_second: null,
      };
      const snapshots = { written, verified };
      show(<RunFacts run={run({ state, progress, snapshots, latest_evaluation: null })} />);
      expect(screen.getByText(text)).toBeVisible();
    },
  );

  it("of a finished run with every snapshot stored is not shown", () => {
    const progress = {
      env_step: 120,
      update: 1,
      episode: 1,
      fraction: 1,
      env_steps_per_second: null,
    };
    const snapshots = { written: 100, verified: 100 };
    show(
      <RunFacts run={run({ state: "succeeded", progress, snapshots, latest_evaluation: null })} />,
    );
    expect(screen.queryByText(/snapshot/)).toBeNull();
  });
});
