/** Jobs of a whole experiment: more seeds, and an evaluation of all runs. */
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ExperimentDetail, Run } from "@/api/types";
import { LimitDialog } from "@/features/experiment/LimitDialog";
import { MoreSeedsDialog } from "@/features/experiment/MoreSeedsDialog";
import { buildEvaluation, buildExport, NEW_EVALUATION, NEW_EXPORT } from "@/lib/jobForms";
import { answers, job, mockServer, sent, show } from "./runFixtures";

beforeEach(mockServer);

const URL = "/experiments?project=lab";
const experiment = {
  id: "pole-1",
  name: "Pole",
  project: "lab",
  definition: { kind: "rl", name: "Pole" },
} as unknown as ExperimentDetail;
const runs = [0, 1].map((seed) => ({ id: `run_${seed}`, seed, job_id: "job_1" }) as Run);
const preview = (id: string) => ({
  status: 200,
  body: {
    experiment_id: id,
    sentence: "Would start at once.",
    jobs: 2,
    pool: "gpu",
    seeds: [2, 3],
    seeds_there: [],
    warnings: [],
  },
});

function open(): void {
  answers.set("/jobs/job_1", { status: 200, body: job({ pool: "gpu", priority: 7 }) });
  show(<MoreSeedsDialog experiment={experiment} runs={runs} onClose={() => undefined} />);
}

describe("more seeds", () => {
  it("are proposed, and submitted with the definition and the options of its runs", async () => {
    answers.set("/experiments:preview", preview("pole-1"));
    open();
    expect(screen.getByLabelText("Seeds")).toHaveValue("2, 3");
    await screen.findByText(/Would start at once/);
    await userEvent.click(screen.getByRole("button", { name: "Submit 2 runs" }));
    await waitFor(() => expect(sent.some((one) => one.url === URL)).toBe(true));
    expect(sent.find((one) => one.url === URL)?.body).toMatchObject({
      definition: experiment.definition,
      options: { seeds: [2, 3], pool: "gpu", priority: 7 },
    });
  });

  it("beyond a thousand are sent as several submissions", async () => {
    answers.set("/experiments:preview", preview("pole-1"));
    open();
    await userEvent.clear(screen.getByLabelText("Seeds"));
    await userEvent.type(screen.getByLabelText("Seeds"), "10-2009, 5000");
    await userEvent.click(await screen.findByRole("button", { name: "Submit 2,001 runs" }));
    const submissions = () => sent.filter((request) => request.url === URL);
    await waitFor(() => expect(submissions()).toHaveLength(3));
    const parts = submissions().map(
      (request) => (request.body as { options: { seeds: number[] } }).options.seeds,
    );
    expect(parts.map((part) => part.length)).toEqual([1_000, 1_000, 1]);
    expect(new Set(parts.flat()).size).toBe(2_001);
    expect(submissions()[2]?.body).toMatchObject({ options: { pool: "gpu", priority: 7 } });
  });

  it("that it has already are refused at the field", async () => {
    answers.set("/experiments:preview", preview("pole-1"));
    open();
    await userEvent.clear(screen.getByLabelText("Seeds"));
    await userEvent.type(screen.getByLabelText("Seeds"), "1-4");
    expect(screen.getByText("It has 1 already.")).toBeVisible();
    expect(screen.getByRole("button", { name: "Submit 0 runs" })).toBeDisabled();
  });

  it("are not submitted where the code has changed, which would make another experiment", async () => {
    answers.set("/experiments:preview", preview("pole-2"));
    open();
    expect(await screen.findByRole("alert")).toHaveTextContent("would make another experiment");
    expect(screen.getByRole("button", { name: "Submit 2 runs" })).toBeDisabled();
  });
});

describe("the limit on running jobs", () => {
  it.each([
    ["3", 3, "Set the limit"],
    ["", null, "Set no limit"],
  ])("is %j", async (typed, most, button) => {
    const changed = { status: 200, body: { ...experiment, max_running: most } };
    answers.set("/experiments/pole-1", changed);
    const fetched = vi.spyOn(globalThis, "fetch");
    show(<LimitDialog experiment={{ ...experiment, max_running: 2 }} onClose={() => undefined} />);
    await userEvent.clear(screen.getByLabelText("Most jobs that run at the same time"));
    if (typed)
      await userEvent.type(screen.getByLabelText("Most jobs that run at the same time"), typed);
    await userEvent.click(screen.getByRole("button", { name: button }));
    const request = fetched.mock.calls
      .map(([, init]) => init)
      .find((one) => one?.method === "PATCH");
    expect(JSON.parse(String(request?.body))).toEqual({ max_running: most });
  });
});

describe("the request of a dialog", () => {
  it("leaves out what is not typed", () => {
    expect(buildEvaluation(NEW_EVALUATION)).toEqual({
      schedule: "evaluate",
      evaluate: { snapshot: "newest" },
    });
    expect(buildExport({ ...NEW_EXPORT, pool: "gpu" })).toEqual({
      schedule: "export",
      evaluate: { snapshot: "newest" },
      pool: "gpu",
    });
  });

  it("draws actions where that is chosen, but not on the training's own episodes", () => {
    const form = { ...NEW_EVALUATION, policy: "both" as const };
    expect(buildEvaluation(form).evaluate).toEqual({ snapshot: "newest", policy: "both" });
    expect(buildEvaluation({ ...form, follow: true })).toEqual({
      schedule: "continuous_eval",
      evaluate: { policy: "both" },
    });
    expect(buildEvaluation({ ...form, follow: true, onTrainData: true }).evaluate).toEqual({});
  });

  it("follows a training, and keeps what only one way of evaluating takes from the other", () => {
    const form = { ...NEW_EVALUATION, follow: true, seed: "3", delay: "5", again: true };
    expect(buildEvaluation(form)).toEqual({
      schedule: "continuous_eval",
      evaluate: { seed: 3, delay_seconds: 5, only_once: false },
    });
    expect(buildEvaluation({ ...form, onTrainData: true })).toEqual({
      schedule: "continuous_eval_on_train_data",
      evaluate: { delay_seconds: 5 },
    });
  });
});
