/** What the queue page sends for its actions, and what undoing them sends. */
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Job } from "@/api/types";
import { buildOwnOrder } from "@/features/queue/ownOrder";
import { invertChange, useQueueActions } from "@/features/queue/useQueueActions";
import { answers, mockServer, sent } from "./runFixtures";

const jobs = ["job_a", "job_b", "job_c"].map(
  (id) =>
    ({
      id,
      state: "queued",
      pool: "default",
      project: "lab",
      created_by: "ada",
      priority_class: id === "job_c" ? "idle" : "normal",
      priority: 2,
      limits: { wall_seconds: 600, max_attempts: 20 },
    }) as Job,
);
const [first, second] = jobs as [Job, Job, Job];
let actions: ReturnType<typeof useQueueActions>;

function Actions() {
  actions = useQueueActions();
  return null;
}

const acted = (done: string[], more: object = {}) => ({
  status: 200,
  body: { matched: done.length, not_permitted: 0, done, refused: [], next_after: null, ...more },
});

beforeEach(() => {
  // What may be undone for some seconds may be so for as long as a busy machine takes.
  vi.useFakeTimers({ shouldAdvanceTime: true });
  mockServer();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <Notifications />
        <Actions />
      </QueryClientProvider>
    </MantineProvider>,
  );
});

const undo = async () => userEvent.click(await screen.findByRole("button", { name: "Undo" }));

describe("an action on the queue page", () => {
  it("moves a job, and back to where it was", async () => {
    await actions.move(buildOwnOrder(jobs), second, { before: "job_a" });
    await undo();
    await waitFor(() => expect(sent).toHaveLength(2));
    expect(sent).toEqual([
      { url: "/jobs/job_b:reorder", body: { before: "job_a" } },
      { url: "/jobs/job_b:reorder", body: { before: null } },
    ]);
  });

  it("offers no undo where the former place is not known", async () => {
    await actions.move(buildOwnOrder(jobs, true), second, { before: "job_a" });
    await screen.findByText("The job was moved");
    expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
  });

  it("says why a move was refused", async () => {
    const detail = "The job was given to a worker a moment ago.";
    answers.set("/jobs/job_b:reorder", { status: 409, body: { code: "already_assigned", detail } });
    await actions.move(buildOwnOrder(jobs), second, { before: "job_a" });
    await screen.findByText(detail);
    expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
  });

  it("gives many jobs a class, and each its own back", async () => {
    answers.set("/jobs:act", acted(["job_a", "job_b", "job_c"]));
    const target = { project: null, selection: { jobs: jobs.map((one) => one.id) } };
    await actions.reclass("urgent", target, jobs);
    await screen.findByText("3 moved to the class urgent");
    await undo();
    await waitFor(() => expect(sent).toHaveLength(3));
    const bodies = sent.map(({ body }) => body as { selection: object; change: object });
    expect(bodies[0]?.change).toEqual({ priority_class: "urgent" });
    expect(bodies.slice(1).map(({ selection, change }) => [selection, change])).toEqual([
      [{ jobs: ["job_a", "job_b"] }, { priority_class: "normal" }],
      [{ jobs: ["job_c"] }, { priority_class: "idle" }],
    ]);
  });

  it("goes on with the next request, and says how many were refused", async () => {
    answers.set(
      "/jobs:act",
      acted(["job_a"], { refused: [{ job_id: "job_b", code: "x", detail: "Not this one." }] }),
    );
    await actions.reclass("idle", { project: null, selection: {} }, jobs);
    await screen.findByText("1 job could not be changed");
    await screen.findByText("Not this one.");
  });

  it("pauses later, and not if it is called off", async () => {
    actions.end("pause", 2, { project: null, selection: { jobs: ["job_a"] } });
    await screen.findByText(/^2 jobs will be paused in \d s$/);
    await undo();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
  });

  it("counts before it asks", async () => {
    answers.set("/jobs:act", acted([], { matched: 9 }));
    const counted = await actions.count("change", { project: "lab", selection: { pool: "p" } });
    expect(counted.matched).toBe(9);
    expect(sent[0]?.url).toBe("/jobs:act?project=lab");
    expect(sent[0]?.body).toMatchObject({ action: "change", dry_run: true });
  });
});

describe("the undo of a change", () => {
  it("sets what was changed back, and nothing else", () => {
    expect(invertChange(first, { priority: 9 })).toEqual({ priority: 2 });
    expect(invertChange(first, { priority_class: "idle" })).toEqual({ priority_class: "normal" });
    const limits = { wall_seconds: 60, stall_seconds: 5 };
    expect(invertChange(first, { limits })).toEqual({
      limits: { wall_seconds: 600, stall_seconds: null },
    });
  });
});
