/** Lines 15.8, 15.22 and 15.23: failures at the top of a page, retries, and files to download. */
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type {
  Artifact,
  Attempt,
  Evaluation,
  Experiment,
  Job,
  Run,
  RunDetail,
  Snapshot,
} from "@/api/types";
import { Actions } from "@/features/experiment/Actions";
import { experimentColumns } from "@/features/experiments/columns";
import { evaluationTable } from "@/features/run/evaluationTable";
import { FilesTab } from "@/features/run/FilesTab";
import { RunActions } from "@/features/run/RunActions";
import { RunFacts } from "@/features/run/RunFacts";
import { RunProblems } from "@/features/run/RunProblems";
import { csv } from "@/lib/csv";

const FAILURE = {
  message: "The environment raised: KeyError.",
  exception: "KeyError",
  traceback: "File env.py, line 3",
};
const CHANGED = {
  type: "about:blank",
  title: "x",
  status: 409,
  code: "code_changed",
  detail: "The workers have tiny 2, the experiment was made with tiny 1.",
  request_id: "r",
  errors: [],
};

const attempt = (changes: Partial<Attempt>): Attempt =>
  ({
    id: "att_1",
    job_id: "job_1",
    number: 1,
    ended_at: null,
    cause: null,
    failure: null,
    ...changes,
  }) as Attempt;
const job = (changes: Partial<Job>): Job =>
  ({
    id: "job_1",
    schedule: "train",
    state: "failed",
    run_ids: ["run_1"],
    cause: null,
    failure: null,
    not_uploaded: null,
    ...changes,
  }) as Job;
const run = (changes: Partial<RunDetail>): RunDetail =>
  ({
    id: "run_1",
    seed: 0,
    state: "failed",
    cause: "user_exception",
    failure: FAILURE,
    job_id: "job_1",
    jobs: [job({})],
    attempts: [],
    definition: { kind: "rl", loop: { env_steps: 100 } },
    ...changes,
  }) as unknown as RunDetail;

const sent: { url: string; body: unknown }[] = [];
let answers: Record<string, { status: number; body: unknown }> = {};

function show(element: React.ReactNode): void {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>
    </MantineProvider>,
  );
}

beforeEach(() => {
  sent.length = 0;
  answers = {};
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const path = url.replace("/api/v1", "").split("?")[0] ?? "";
    if (init.method === "POST")
      sent.push({ url: path, body: init.body ? JSON.parse(String(init.body)) : null });
    const { status, body } = answers[path] ?? {
      status: 200,
      body: { items: [], next_cursor: null },
    };
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
});

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

describe("Line 15.8: a retry", () => {
  it.each([
    ["From the newest snapshot", "newest"],
    ["From the start, superseding what it recorded", "start"],
  ])("%s", async (label, origin) => {
    show(<RunActions run={run({})} />);
    await userEvent.click(screen.getByRole("button", { name: "Retry" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: label }));
    expect(sent).toEqual([{ url: "/runs/run_1:retry", body: { origin } }]);
  });

  it("of every failed run of an experiment", async () => {
    const runs = ["failed", "failed", "succeeded"].map(
      (state, i) => ({ id: `run_${i}`, state, job_id: `job_${i}` }) as Run,
    );
    show(
      <Actions experiment={{ id: "cartpole-1", archived_at: null } as Experiment} runs={runs} />,
    );
    await userEvent.click(screen.getByRole("button", { name: "Retry 2 failed" }));
    expect(sent.map((one) => one.url)).toEqual(["/runs/run_0:retry", "/runs/run_1:retry"]);
  });

  it("resumes with other code only after the user has seen both names and agreed", async () => {
    answers["/jobs/job_1:resume"] = { status: 409, body: CHANGED };
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

describe("Lines 15.1 and 15.4: what the server has not stored", () => {
  const backlog = {
    files: 2,
    size: 2048,
    problem: "The disk of the server is full.",
    delivering: true,
    message: "…",
  };

  it("is shown with its cause, and can be given up", async () => {
    answers["/jobs/job_1:give-up"] = { status: 200, body: job({}) };
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

describe("Line 15.23: files", () => {
  const file = (changes: Partial<Artifact>): Artifact =>
    ({
      id: "art_1",
      name: "policy.onnx",
      kind: "export",
      size: 2048,
      sha256: "ab".repeat(32),
      stored: true,
      created_at: "2026-01-01T00:00:00Z",
      ...changes,
    }) as Artifact;

  it("of exports and snapshots are links where the server has stored them", async () => {
    const files = [
      file({}),
      file({ id: "art_2", name: "later.bin", stored: false }),
      file({ id: "art_3", kind: "snapshot", name: "state" }),
    ];
    const snapshot = {
      id: "snp_1",
      state: "verified",
      env_step: 50,
      files: [{ name: "weights", size: 9, artifact_id: "art_9" }],
    };
    answers["/runs/run_1/artifacts"] = { status: 200, body: { items: files, next_cursor: null } };
    answers["/runs/run_1/snapshots"] = {
      status: 200,
      body: { items: [snapshot as unknown as Snapshot], next_cursor: null },
    };
    show(<FilesTab run={run({ state: "succeeded" })} />);
    const link = await screen.findByRole("link", { name: "Download policy.onnx" });
    expect(link).toHaveAttribute("href", "/api/v1/artifacts/art_1/content");
    expect(screen.getByText("not uploaded yet:")).toBeVisible();
    expect(screen.queryByRole("link", { name: "Download later.bin" })).toBeNull();
    await userEvent.click(
      await screen.findByRole("button", { name: "Download the snapshot at 50" }),
    );
    expect(await screen.findByRole("menuitem", { name: /weights/ })).toHaveAttribute(
      "href",
      "/api/v1/artifacts/art_9/content",
    );
  });

  it("of evaluations hold every digit, no spread of a single value, and no formula", () => {
    const row = {
      env_step: 10,
      episodes: 1,
      mean: 1 / 3,
      stdev: 0,
      returns: [1 / 3],
      metrics: {},
    } as unknown as Evaluation;
    const [header = "", line = ""] = evaluationTable([row]).split("\r\n");
    const cells = new Map(header.split(",").map((name, i) => [name, line.split(",")[i]]));
    expect([cells.get("mean"), cells.get("stdev"), cells.get("returns")]).toEqual([
      "0.3333333333333333",
      "",
      "0.3333333333333333",
    ]);
    expect(csv(["a"], [["=1+1"], ['say "x", y'], [-2]])).toBe(
      'a\r\n\'=1+1\r\n"say ""x"", y"\r\n-2\r\n',
    );
  });
});
