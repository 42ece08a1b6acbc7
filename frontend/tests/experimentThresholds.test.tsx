/** Thresholds as columns of the page of experiments. */
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Threshold } from "@/api/types";
import { App } from "@/app/App";
import { chooseThresholds, writeThresholds } from "@/features/experiments/thresholdColumns";

const asked: URL[] = [];
let thresholds: Threshold[] = [];

const threshold = (name: string, changes: Partial<Threshold> = {}): Threshold => ({
  name,
  series: "evaluation/mean",
  value: 195,
  direction: "at_least",
  runs: 3,
  pending_runs: 0,
  ...changes,
});
const experiment = (name: string, values: object) => ({
  id: `${name}-0123456789abcdef`,
  project: "lab",
  name,
  state: "succeeded",
  runs: { succeeded: 3, failed: 2 },
  agent: "dqn",
  env: "CartPole-v1",
  kind: "rl",
  created_by: "eva",
  created_at: "2026-11-01T10:00:00Z",
  latest_evaluation: null,
  failures: [],
  values,
});
const page = (items: object[]) => ({ items, next_cursor: null });

function answer(path: string): object {
  if (path === "/session") {
    const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
    const projects = [{ ...lab, permissions: ["project.read", "run.submit"] }];
    return { user: "eva", projects, permissions: [], csrf_token: "x", scopes: [] };
  }
  if (path === "/projects/lab/thresholds") return page(thresholds);
  if (path === "/experiments")
    return page([
      experiment("fast", { "reached.solved": 12_400, "reached.solved.runs": 5 }),
      experiment("slow", { "reached.solved": null, "reached.solved.runs": 2 }),
      experiment("never", { "reached.solved": null, "reached.solved.runs": 0 }),
    ]);
  return page([]);
}

beforeEach(() => {
  asked.length = 0;
  thresholds = [threshold("solved"), threshold("tiny-loss", { direction: "at_most", value: 0.1 })];
  vi.stubGlobal("fetch", async (address: string) => {
    const url = new URL(address, "http://localhost");
    if (url.pathname.includes("/events")) return new Promise(() => undefined);
    asked.push(url);
    return new Response(JSON.stringify(answer(url.pathname.replace("/api/v1", ""))));
  });
});

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

const lastList = () => asked.filter((url) => url.pathname.endsWith("/experiments")).at(-1);
const parameters = () => new URLSearchParams(window.location.search);

describe("columns of thresholds", () => {
  it("have the median over the runs, and how many of them reached it", async () => {
    open("/p/lab/experiments");
    const heading = await screen.findByRole("button", { name: "Reached solved" });
    await waitFor(() =>
      expect(lastList()?.searchParams.getAll("columns")).toEqual([
        "reached.solved",
        "reached.solved.runs",
      ]),
    );
    const [, fast, slow, never] = within(screen.getByRole("table")).getAllByRole("row");
    await waitFor(() => expect(fast).toHaveTextContent("12.4k5 of 5"));
    expect(slow).toHaveTextContent("–2 of 5");
    expect(
      within(fast as HTMLElement).getByTitle(
        "5 of 5 runs reached evaluation/mean of at least 195; " +
          "median 12,400 env_steps, where runs that have not come last.",
      ),
    ).toBeVisible();
    expect(
      within(slow as HTMLElement).getByTitle(/there is a median once more than half of the runs/),
    ).toBeVisible();
    expect(within(never as HTMLElement).getByTitle(/^0 of 5 runs .* 195\.$/)).toBeVisible();
    await userEvent.click(heading);
    await waitFor(() => expect(lastList()?.searchParams.get("sort")).toBe("-reached.solved"));
  });

  it("are chosen by the button, and kept in the URL", async () => {
    open("/p/lab/experiments");
    await userEvent.click(await screen.findByRole("button", { name: "Thresholds" }));
    await userEvent.click(await screen.findByRole("checkbox", { name: "tiny-loss" }));
    await waitFor(() => expect(parameters().get("reached")).toBe("solved,tiny-loss"));
    await waitFor(() =>
      expect(lastList()?.searchParams.getAll("columns")).toContain("reached.tiny-loss"),
    );
    expect(lastList()?.searchParams.has("reached")).toBe(false);
    await userEvent.click(screen.getByRole("checkbox", { name: "solved" }));
    await userEvent.click(screen.getByRole("checkbox", { name: "tiny-loss" }));
    await waitFor(() => expect(parameters().get("reached")).toBe("none"));
    expect(screen.queryByRole("button", { name: /^Reached/ })).toBeNull();
  });

  it("are not there in a project without thresholds", async () => {
    thresholds = [];
    open("/p/lab/experiments");
    await screen.findByRole("table");
    await waitFor(() =>
      expect(asked.some((url) => url.pathname.endsWith("/thresholds"))).toBe(true),
    );
    expect(screen.queryByRole("button", { name: "Thresholds" })).toBeNull();
    expect(lastList()?.searchParams.has("columns")).toBe(false);
  });

  it("include that by which the list is sorted", () => {
    const [solved, loss] = thresholds as [Threshold, Threshold];
    const all = [solved, loss];
    expect(chooseThresholds(all, undefined, "-created_at")).toEqual([solved]);
    expect(chooseThresholds(all, undefined, "reached.tiny-loss")).toEqual([solved, loss]);
    expect(chooseThresholds(all, "none", "-reached.solved")).toEqual([solved]);
    expect(chooseThresholds(all, "gone,tiny-loss", "name")).toEqual([loss]);
    expect(chooseThresholds(all, writeThresholds([]), "name")).toEqual([]);
  });
});
