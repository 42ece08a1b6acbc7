import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Evaluation, Experiment, Job, Run, RunDetail } from "@/api/types";
import { Actions } from "@/features/experiment/Actions";
import { mergeEvaluations } from "@/features/run/mergeEvaluations";
import { RunActions } from "@/features/run/RunActions";
import { RunJobs } from "@/features/run/RunJobs";
import { isOfEvaluations } from "@/features/run/seriesGroups";

const job = (changes: Partial<Job>): Job =>
  ({
    id: "job_1",
    run_ids: ["run_1"],
    seeds: [0],
    schedule: "train",
    state: "running",
    waiting: null,
    cause: null,
    failure: null,
    attempts: 1,
    created_at: "2026-01-02T03:04:05Z",
    ...changes,
  }) as Job;

const run = (...jobs: Job[]): RunDetail =>
  ({ id: "run_1", seed: 3, job_id: "job_1", jobs }) as unknown as RunDetail;

let pools: object[] = [];
const sent: { url: string; body: unknown }[] = [];

function show(element: React.ReactNode): void {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>
    </MantineProvider>,
  );
}

beforeEach(() => {
  sent.length = 0;
  pools = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    sent.push({ url, body: init.body ? JSON.parse(String(init.body)) : null });
    const body = url.endsWith("/pools")
      ? { items: pools, next_cursor: null }
      : job({ schedule: "continuous_eval" });
    return Promise.resolve(new Response(JSON.stringify(body), { status: 201 }));
  });
});

describe("a pack", () => {
  const packed = job({ run_ids: ["run_1", "run_2", "run_3"] });

  it("is named before a run is cancelled, since it is cancelled with the run", async () => {
    show(<RunActions run={run(packed)} />);
    await userEvent.click(screen.getByRole("button", { name: "Cancel…" }));
    expect(
      await screen.findByText(
        /in a pack, as one job with 2 other seeds: they are cancelled with it/,
      ),
    ).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Cancel 3 runs" }));
    expect(sent.map((one) => one.url)).toEqual(["/api/v1/jobs/job_1:cancel"]);
  });

  it("is not named for a run without one", async () => {
    show(<RunActions run={run(job({}))} />);
    await userEvent.click(screen.getByRole("button", { name: "Cancel…" }));
    expect(await screen.findByRole("button", { name: "Cancel the run" })).toBeVisible();
    expect(screen.queryByText(/in a pack/)).toBeNull();
  });

  it("is paused once, not once per run", async () => {
    const runs = packed.run_ids.map((id) => ({ id, state: "running", job_id: packed.id }) as Run);
    show(<Actions experiment={{ id: "cartpole-1" } as Experiment} runs={runs} />);
    await userEvent.click(screen.getByRole("button", { name: "Pause all" }));
    expect(sent.map((one) => one.url)).toEqual(["/api/v1/jobs/job_1:pause"]);
  });
});

describe("schedules on a run", () => {
  it("queues a test", async () => {
    await openDialog("Test the definition…");
    await userEvent.click(await screen.findByRole("button", { name: "Queue the test" }));
    expect(posted().map((one) => one.body)).toEqual([{ schedule: "test" }]);
  });

  it("queues a test in another pool", async () => {
    pools = [{ name: "default" }, { name: "gpus" }];
    await openDialog("Test the definition…");
    await userEvent.click(await screen.findByRole("combobox", { name: "Pool" }));
    await userEvent.click(await screen.findByRole("option", { name: "gpus" }));
    await userEvent.click(screen.getByRole("button", { name: "Queue the test" }));
    expect(posted().map((one) => one.body)).toEqual([{ schedule: "test", pool: "gpus" }]);
  });

  async function openDialog(item: string): Promise<void> {
    show(<RunActions run={run(job({}))} />);
    await userEvent.click(screen.getByRole("button", { name: "New job" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: item }));
  }

  const posted = () => sent.filter((one) => one.url.endsWith("/runs/run_1/jobs"));

  it("evaluates a snapshot with the typed episodes and seed", async () => {
    await openDialog("Evaluate…");
    await userEvent.type(await screen.findByLabelText("Episodes"), "50");
    await userEvent.type(screen.getByLabelText("Seed"), "7");
    await userEvent.click(screen.getByRole("button", { name: "Queue the evaluation" }));
    const evaluate = { snapshot: "newest", episodes: 50, seed: 7 };
    expect(posted().map((one) => one.body)).toEqual([{ schedule: "evaluate", evaluate }]);
  });

  it("follows a training on its own episodes", async () => {
    await openDialog("Evaluate…");
    await userEvent.click(await screen.findByRole("radio", { name: "Every snapshot as it comes" }));
    await userEvent.click(screen.getByRole("switch", { name: /^On the training's own/ }));
    await userEvent.type(screen.getByLabelText("Least time between two (s)"), "30");
    await userEvent.click(screen.getByRole("button", { name: "Queue the evaluation" }));
    expect(posted().map((one) => one.body)).toEqual([
      { schedule: "continuous_eval_on_train_data", evaluate: { throttle_seconds: 30 } },
    ]);
  });

  it("exports the chosen formats", async () => {
    await openDialog("Export…");
    await userEvent.click(await screen.findByRole("checkbox", { name: "ONNX" }));
    await userEvent.click(screen.getByRole("button", { name: "Queue the export" }));
    const evaluate = { snapshot: "newest", formats: ["onnx"] };
    expect(posted().map((one) => one.body)).toEqual([{ schedule: "export", evaluate }]);
  });

  it("shows every job with its reason to wait, and cancels jobs besides training", async () => {
    const follower = job({
      id: "job_2",
      schedule: "continuous_eval",
      state: "queued",
      waiting: "Follows the training.",
    });
    show(<RunJobs run={run(job({}), follower)} />);
    expect(screen.getByText("continuous eval")).toBeVisible();
    expect(screen.getByText("Follows the training.")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Cancel continuous eval" }));
    expect(sent.map((one) => one.url)).toEqual(["/api/v1/jobs/job_2:cancel"]);
    expect(screen.queryByRole("button", { name: "Cancel train" })).toBeNull();
  });

  it("draws the episodes of one state as one point", () => {
    const at = (env_step: number, mean: number, episodes: number, min: number, max: number) =>
      ({
        env_step,
        update: 1,
        mean,
        episodes,
        min,
        max,
        superseded: false,
        snapshot_id: null,
      }) as unknown as Evaluation;
    const drawn = mergeEvaluations([at(10, 4, 1, 4, 4), at(20, 1, 2, 0, 2), at(20, 4, 4, 3, 9)]);
    expect(drawn.map((one) => [one.env_step, one.mean, one.min, one.max, one.episodes])).toEqual([
      [10, 4, 4, 4, 1],
      [20, 3, 0, 9, 6],
    ]);
  });

  it("reads the curves of all sources from the evaluations", () => {
    const names = [
      "evaluation/mean",
      "evaluation_on_train_data/max",
      "evaluation_of_test/mean",
      "evaluations/x",
      "loss/td",
    ];
    expect(names.filter(isOfEvaluations)).toEqual(names.slice(0, 3));
  });
});

describe("Line 15.24: archiving", () => {
  const experiment = (archived_at: string | null) =>
    ({ project: "default", id: "cartpole-1", archived_at }) as Experiment;
  const menu = () => userEvent.click(screen.getByRole("button", { name: "More actions" }));

  it("can be undone at once", async () => {
    // At once is as long as a busy machine takes.
    vi.useFakeTimers({ shouldAdvanceTime: true });
    show(
      <>
        <Notifications />
        <Actions experiment={experiment(null)} runs={[]} />
      </>,
    );
    await menu();
    await userEvent.click(await screen.findByRole("menuitem", { name: "Archive" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(sent).toHaveLength(2));
    expect(sent.map((one) => one.url)).toEqual([
      "/api/v1/experiments/cartpole-1:archive?project=default",
      "/api/v1/experiments/cartpole-1:unarchive?project=default",
    ]);
  });

  it("can be undone later in the menu", async () => {
    show(<Actions experiment={experiment("2026-01-02T03:04:05Z")} runs={[]} />);
    await menu();
    await userEvent.click(await screen.findByRole("menuitem", { name: "Unarchive" }));
    expect(sent.map((one) => one.url)).toEqual([
      "/api/v1/experiments/cartpole-1:unarchive?project=default",
    ]);
  });
});
