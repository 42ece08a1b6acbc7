/** The page of an experiment: scores, progress, failures and archiving. */
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ExperimentDetail, RunDetail } from "@/api/types";
import { App } from "@/app/App";
import { experiments } from "../dev/mock/experiments.ts";
import { sent } from "./runFixtures";

const FAILURE = {
  message: "The environment raised KeyError: 'pole'. Mend its step().",
  exception: "KeyError",
  traceback: "File env.py, line 3",
};
const SESSION = {
  user: "admin",
  projects: [
    {
      project_id: "prj_default",
      slug: "default",
      name: "default",
      role: "maintainer",
      archived: false,
      permissions: ["project.read", "run.submit", "run.control_any"],
    },
  ],
  permissions: [],
  scopes: [],
  csrf_token: "x",
};
const made = experiments.find(({ view }) => view.name === "CartPole PPO");
const run = made?.runs[0]?.view as RunDetail;
let experiment: ExperimentDetail;
let runs: RunDetail[];

const page = (items: object[]) => ({ items, next_cursor: null });

/** Does what an address asks for, and returns the answer. */
function act(path: string): object | undefined {
  const archived_at = "2026-11-02T10:00:00Z";
  if (path.endsWith(":archive")) experiment = { ...experiment, archived_at };
  else if (path.endsWith(":unarchive")) experiment = { ...experiment, archived_at: null };
  else if (path === `/runs/${run.id}:retry`)
    runs = [
      {
        ...run,
        attempts: runs[0]?.attempts ?? [],
        state: "queued",
        cause: null,
        failure: null,
        job_id: "job_again",
      },
    ];
  else return undefined;
  return path.startsWith("/runs/") ? { id: "job_again" } : experiment;
}

function answer(path: string): object {
  const place = `/experiments/${experiment.id}`;
  if (path === "/session") return SESSION;
  if (path === place) return experiment;
  if (path === `${place}/runs`) return page(runs);
  return runs.find((run) => path === `/runs/${run.id}`) ?? page([]);
}

function open(changes: Partial<ExperimentDetail>, ...changesOfRuns: Partial<RunDetail>[]): void {
  experiment = { ...(made?.view as ExperimentDetail), archived_at: null, ...changes };
  runs = changesOfRuns.map((change, seed) => ({
    ...(made?.runs[seed]?.view as RunDetail),
    definition: experiment.definition,
    ...change,
  }));
  window.history.replaceState(null, "", `/p/default/experiments/${experiment.id}`);
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const path = new URL(url, "http://x").pathname.replace("/api/v1", "");
    // Without curves and scores nothing is drawn: jsdom has no canvas.
    if (["/events:stream", "/series:query", "/statistics:aggregate"].includes(path))
      return new Promise(() => undefined);
    if (init.method === "POST")
      sent.push({ url: path, body: init.body ? JSON.parse(String(init.body)) : null });
    return Promise.resolve(new Response(JSON.stringify(act(path) ?? answer(path))));
  });
});

describe("the page of an experiment", () => {
  const score = () => screen.findByTitle("Over the latest evaluation of each run");

  it("shows no deviation of a single run", async () => {
    const mean = { metric: null, mean: 401.9, min: 401.9, max: 401.9 };
    open({ latest_evaluation: { ...mean, runs: 1, stdev: null } }, {});
    expect(await score()).toHaveTextContent("401.9n = 1 run");
    expect(await score()).not.toHaveTextContent("±");
  });

  it("shows the deviation of several runs, and full progress where one reached its target", async () => {
    const mean = { metric: null, mean: 350, min: 294, max: 450, stdev: 86.7 };
    const progress = { ...run.progress, fraction: 0.28 };
    open(
      { latest_evaluation: { ...mean, runs: 2 } },
      { state: "succeeded", cause: "success_score", progress },
      { state: "succeeded", cause: "budget", progress: { ...progress, fraction: 1 } },
    );
    expect(await score()).toHaveTextContent("350 ± 87 sdn = 2 runs");
    const bar = await screen.findByRole("progressbar", { name: "Progress of seed 0" });
    expect(bar).toHaveAttribute("aria-valuenow", "100");
    const table = within(screen.getByRole("table", { name: "Runs" }));
    expect(table.getAllByText("target")).toHaveLength(1);
  });

  it("begins with why its runs failed, and leads to the run, which can be retried", async () => {
    const failed = { state: "failed", cause: "user_exception", failure: FAILURE } as const;
    const failures = [{ cause: failed.cause, message: FAILURE.message, runs: 1, run_id: run.id }];
    const attempts = run.attempts.map((attempt) => ({ ...attempt, cause: failed.cause }));
    open({ runs: { failed: 1 }, failures }, { ...failed, attempts });
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent("1 run failed: user exception");
    await userEvent.click(within(alert).getByRole("link", { name: "Look at the run" }));
    await userEvent.click(await screen.findByRole("button", { name: "Retry…" }));
    expect(screen.getByText(FAILURE.traceback)).toBeInTheDocument();
    await userEvent.click(
      await screen.findByRole("button", { name: "Retry the run", hidden: true }),
    );
    await waitFor(() => expect(screen.queryByRole("alert")).toBeNull());
    expect(screen.queryByText(/attempt 1 ended/)).toBeNull();
    expect(sent).toEqual([{ url: `/runs/${run.id}:retry`, body: { origin: "newest" } }]);
  });

  it("is marked as archived until that is undone", async () => {
    // What may be undone for some seconds may be so for as long as a busy machine takes.
    vi.useFakeTimers({ shouldAdvanceTime: true });
    open({}, {});
    await userEvent.click(await screen.findByRole("button", { name: "More actions" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Archive" }));
    expect(await screen.findByText("archived")).toHaveAttribute("data-state", "archived");
    await userEvent.click(screen.getByRole("button", { name: "Undo" }));
    await waitFor(() => expect(screen.queryByText("archived")).toBeNull());
  });
});
