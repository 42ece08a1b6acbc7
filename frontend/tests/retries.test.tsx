/** Line 15.8: retries, and resumes with changed code. */
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Experiment, Run } from "@/api/types";
import { Actions } from "@/features/experiment/Actions";
import { RunActions } from "@/features/run/RunActions";
import { RunProblems } from "@/features/run/RunProblems";
import { answers, FAILURE, job, mockServer, run, sent, show } from "./runFixtures";

beforeEach(mockServer);

const CHANGED = {
  type: "about:blank",
  title: "x",
  status: 409,
  code: "code_changed",
  detail: "The workers have tiny 2, the experiment was made with tiny 1.",
  request_id: "r",
  errors: [],
};

describe("Line 15.8: a retry", () => {
  it.each([
    ["From the newest snapshot", "newest"],
    ["From the start", "start"],
  ])("%s", async (label, origin) => {
    show(<RunActions run={run({})} />);
    await userEvent.click(screen.getByRole("button", { name: "Retry…" }));
    await userEvent.click(await screen.findByRole("radio", { name: label }));
    await userEvent.click(screen.getByRole("button", { name: "Retry the run" }));
    expect(sent).toEqual([{ url: "/runs/run_1:retry", body: { origin } }]);
  });

  it("with a reason", async () => {
    show(<RunActions run={run({})} />);
    await userEvent.click(screen.getByRole("button", { name: "Retry…" }));
    await userEvent.type(await screen.findByRole("textbox", { name: "Reason" }), " disk full ");
    await userEvent.click(screen.getByRole("button", { name: "Retry the run" }));
    expect(sent.map((one) => one.body)).toEqual([{ origin: "newest", reason: "disk full" }]);
  });

  it("of every failed run of an experiment", async () => {
    const runs = ["failed", "failed", "succeeded"].map(
      (state, i) => ({ id: `run_${i}`, state, job_id: `job_${i}` }) as Run,
    );
    show(
      <Actions experiment={{ id: "cartpole-1", archived_at: null } as Experiment} runs={runs} />,
    );
    await userEvent.click(screen.getByRole("button", { name: "Retry 2 failed…" }));
    await userEvent.click(await screen.findByRole("radio", { name: "From the start" }));
    await userEvent.click(screen.getByRole("button", { name: "Retry 2 runs" }));
    expect(sent).toEqual(
      ["run_0", "run_1"].map((id) => ({ url: `/runs/${id}:retry`, body: { origin: "start" } })),
    );
  });

  it("resumes with other code only after the user has seen both names and agreed", async () => {
    answers.set("/jobs/job_1:resume", { status: 409, body: CHANGED });
    show(
      <RunActions
        run={run({ state: "paused", cause: "code_changed", jobs: [job({ state: "paused" })] })}
      />,
    );
    await userEvent.click(screen.getByRole("button", { name: "Resume" }));
    expect(await screen.findByText(CHANGED.detail)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Go on with the changed code" }));
    expect(sent.map((one) => one.body)).toEqual([{}, { allow_code_change: true }]);
  });

  it("shows why a paused run cannot be resumed", () => {
    show(
      <RunProblems
        run={run({
          state: "paused",
          cause: "code_changed",
          failure: { ...FAILURE, message: "Other code." },
        })}
      />,
    );
    expect(screen.getByRole("status")).toHaveTextContent("paused: code changedOther code.");
  });
});
