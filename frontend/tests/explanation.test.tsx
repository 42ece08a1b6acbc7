/** The explanation of a waiting job on the queue page. */
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Job, JobExplanation } from "@/api/types";
import { App } from "@/app/App";

const session = {
  user: "ada",
  projects: [
    {
      project_id: "prj_lab",
      slug: "lab",
      name: "Lab",
      role: "member",
      archived: false,
      permissions: ["project.read", "run.submit"],
    },
  ],
  permissions: [],
  scopes: [],
  csrf_token: "x",
};
const waiting: Partial<Job> = {
  id: "job_waiting",
  project: "lab",
  experiment_id: "cartpole-dqn-0123456789",
  run_ids: ["run_1", "run_2"],
  seeds: [0, 1],
  schedule: "train",
  state: "queued",
  position: 3,
  pool: "default",
  priority_class: "normal",
  priority: 0,
  limits: {} as Job["limits"],
  resources: { gpus: 0, cpu_threads: 1 } as Job["resources"],
  attempts: 0,
  created_by: "ada",
  created_at: "2026-11-24T10:00:00Z",
  waiting: "All 2 slots of the pool default are busy; 2 jobs start before it.",
};
const explanation: JobExplanation = {
  job_id: "job_waiting",
  state: "queued",
  reason: "behind_jobs",
  sentence: "All 2 slots of the pool default are busy; 2 jobs start before it.",
  terms: {
    priority_class: "normal",
    project_usage: 7_200,
    project_share: 0.25,
    user_usage: 3_600,
    priority: 4,
    own_place: 0,
    seed_index: 2,
    queued_at: "2026-11-24T10:00:00Z",
  },
  ahead: 2,
  ahead_is_cut: false,
  own_ahead: ["job_first"],
};
const POOL = {
  name: "default",
  paused_at: null,
  projects: [{ project: "lab" }],
  slots: 2,
  free_slots: 0,
  queued: 1,
  running: 2,
};
let answer: { status: number; body: object };

async function serve(url: string): Promise<Response> {
  const { pathname } = new URL(url, "http://x");
  const path = pathname.replace("/api/v1", "");
  if (path.endsWith("/events:stream")) return new Promise(() => undefined);
  if (path === "/session") return new Response(JSON.stringify(session));
  if (path === "/jobs/job_waiting/explain")
    return new Response(JSON.stringify(answer.body), { status: answer.status });
  const body: object = {
    "/pools": { items: [POOL], next_cursor: null },
    "/pools/default/queue": { items: [waiting], next_cursor: null, lanes: [] },
    "/pools/default/shares": { projects: [], period_seconds: 604_800 },
  }[path] ?? { items: [], next_cursor: null };
  return new Response(JSON.stringify(body));
}

beforeEach(() => {
  answer = { status: 200, body: explanation };
  vi.stubGlobal("fetch", vi.fn(serve));
  window.history.replaceState(null, "", "/p/lab/queue");
});

async function openDialog(): Promise<HTMLElement> {
  render(<App />);
  await userEvent.click(await screen.findByRole("button", { name: /2 jobs start before it/ }));
  return screen.findByRole("dialog");
}

describe("why a job waits", () => {
  it("is told with every term, and does not leave the page", async () => {
    const dialog = await openDialog();
    await within(dialog).findByText("2 h 00 min of device time; its share of the pool is 25 %");
    expect(dialog.textContent).toContain("1 h 00 min of device time in the project");
    expect(dialog.textContent).toContain("number 3 of its experiment");
    expect(dialog.textContent).toContain("2 jobs");
    expect(dialog.textContent).toContain("job_first");
    expect(window.location.pathname).toBe("/p/lab/queue");
  });

  it("says so when only the first jobs were looked at", async () => {
    answer.body = { ...explanation, ahead: 1_000, ahead_is_cut: true, own_ahead: [] };
    const dialog = await openDialog();
    expect((await within(dialog).findByText(/1,000 jobs/)).textContent).toBe("1,000 jobs or more");
  });

  it("shows the sentence alone of a job that started meanwhile", async () => {
    const sentence = "The job does not wait in the queue: it is running.";
    answer.body = { ...explanation, state: "running", reason: null, terms: null, sentence };
    const dialog = await openDialog();
    await within(dialog).findByText(sentence);
    expect(within(dialog).queryByText("Class")).toBeNull();
  });

  it("shows the refusal of a request that failed", async () => {
    answer = { status: 404, body: { code: "not_found", detail: "There is no such job." } };
    const dialog = await openDialog();
    await within(dialog).findByText(/There is no such job/);
  });
});
