import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { PoolOccupancy, UsageReport } from "@/api/types";
import { App } from "@/app/App";
import { chooseTicks } from "@/charts/StackedBars";
import { buildOccupancyBars, buildUsageBars, formatHours } from "@/features/usage/usageData";
import { buildUsageParameters, readUsageSearch } from "@/features/usage/usageSearch";

const STARTS = ["2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"];
const group = (name: string, used: number[], lost: number[] = []) => ({
  project: name,
  user: null,
  experiment: null,
  environment: null,
  pool: null,
  used_seconds: used.reduce((all, one) => all + one, 0),
  gpu_seconds: 0,
  lost_seconds: lost.reduce((all, one) => all + one, 0),
  buckets: STARTS.map((start, i) => ({
    start,
    used_seconds: used[i] ?? 0,
    gpu_seconds: 0,
    lost_seconds: lost[i] ?? 0,
  })),
});
const pool = (recorded: number): PoolOccupancy => ({
  pool: "default",
  recorded_seconds: recorded,
  slot_seconds: 4 * recorded,
  busy_seconds: recorded,
  idle_waiting_seconds: recorded / 2,
  buckets:
    recorded > 0
      ? [
          {
            start: STARTS[1] as string,
            recorded_seconds: recorded,
            slot_seconds: 4 * recorded,
            busy_seconds: recorded,
            idle_waiting_seconds: recorded / 2,
          },
        ]
      : [],
});
const report = (changes: Partial<UsageReport>): UsageReport => ({
  at: "2026-11-24T12:00:00Z",
  since: "2026-11-23T12:00:00Z",
  until: "2026-11-24T12:00:00Z",
  by: ["project"],
  bucket: "day",
  starts: STARTS,
  groups: [group("lab", [3600, 7200], [0, 1800]), group("games", [3600, 0])],
  rest: null,
  rest_groups: 0,
  pools: [pool(3600)],
  used_seconds: 14_400,
  gpu_seconds: 0,
  lost_seconds: 1800,
  ...changes,
});

const urls: string[] = [];

const none = { queued: null, running: null, device_hours: null };
const quota = (pool: string) => ({
  pool,
  project: "lab",
  of_person: {
    limits: { ...none, running: 4 },
    used: { queued: 0, running: 3, device_hours: 0 },
    left: { ...none, running: 1 },
  },
  of_project: {
    limits: { ...none, device_hours: 100 },
    used: { queued: 9, running: 9, device_hours: 87.5 },
    left: { ...none, device_hours: 12.5 },
  },
});

function serve(answer: UsageReport | null, quotas: object[] = []): void {
  const projects = [{ project_id: "prj_1", slug: "lab", name: "Lab", role: "member" }].map(
    (one) => ({ ...one, archived: false, permissions: [] }),
  );
  const session = { user: "eva", projects, permissions: [], csrf_token: "x", scopes: [] };
  const share = { used_seconds: 3600, used: 0.5, decayed_seconds: 3600, decayed: 0.25 };
  const shares = {
    pool: "default",
    at: "2026-11-24T12:00:00Z",
    period_seconds: 604_800,
    half_life_seconds: 604_800,
    projects: [
      {
        project: "lab",
        name: "Lab",
        entitled: 0.75,
        ...share,
        persons: [{ user: "eva", entitled: 0.75, ...share }],
      },
      { project: null, name: null, entitled: 0.25, ...share, persons: [] },
    ],
  };
  vi.stubGlobal("fetch", (url: string) => {
    urls.push(url);
    const { pathname } = new URL(url, "http://x");
    const problem = { type: "", title: "", status: 503, code: "unavailable", detail: "Later." };
    if (pathname.endsWith("/usage") && answer === null)
      return Promise.resolve(
        new Response(JSON.stringify({ ...problem, request_id: "1", errors: [] }), { status: 422 }),
      );
    const body = pathname.endsWith("/session")
      ? session
      : pathname.endsWith("/usage")
        ? answer
        : pathname.endsWith("/usage/quotas")
          ? { period_seconds: 604_800, items: quotas }
          : pathname.endsWith("/shares")
            ? shares
            : pathname.endsWith("/pools")
              ? { items: [{ name: "default" }], next_cursor: null }
              : { items: [], next_cursor: null };
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

beforeEach(() => {
  urls.length = 0;
});

describe("the page of usage", () => {
  it("shows what groups used and lost, and what a pool's shares are", async () => {
    serve(report({}));
    open("/usage");
    const groups = await screen.findByRole("table", { name: "Usage by group" });
    const [, first] = within(groups).getAllByRole("row");
    expect(first).toHaveTextContent(/^lab.*3\.00 h.*0\.50 h$/);
    const slots = await screen.findByRole("table", { name: "Slots by pool" });
    expect(within(slots).getAllByRole("row")[1]).toHaveTextContent("0.50 h");
    const shares = await screen.findByRole("table", { name: "Shares of the pool" });
    expect(
      within(shares).getByRole("img", { name: "lab, used: 50 %, entitled to 75 %" }),
    ).toBeVisible();
    expect(shares).toHaveTextContent("other projects");
    expect(screen.getByText("75 % of the pool")).toBeVisible();
    const csv = screen.getByRole("link", { name: "Download CSV" });
    expect(csv.getAttribute("href")).toContain("/usage:export?by=project&bucket=day&since=");
  });

  it("says what is left of the quotas in the pool", async () => {
    serve(report({}), [quota("default"), quota("other")]);
    open("/usage");
    const left = await screen.findByRole("region", { name: "Left of the quotas" });
    const lines = within(left).getAllByRole("listitem");
    expect(lines.map((line) => line.textContent)).toEqual([
      expect.stringMatching(/^Yours in lab.*1 of 4 running jobs$/),
      expect.stringMatching(/^All of lab.*12\.5 of 100 device-hours in 7 days$/),
    ]);
    const meter = within(left).getByRole("meter", { name: "Yours in lab: running jobs" });
    expect(meter).toHaveAttribute("value", "0.75");
  });

  it("says nothing of quotas where there are none", async () => {
    serve(report({}));
    open("/usage");
    await screen.findByText("75 % of the pool");
    expect(screen.queryByText("Left of the quotas")).toBeNull();
  });

  it("keeps period, grouping and filter in the address", async () => {
    serve(report({}));
    open("/usage");
    await screen.findByRole("table", { name: "Usage by group" });
    await userEvent.click(screen.getByText("30 days"));
    await userEvent.click(screen.getByLabelText("Only mine"));
    expect(window.location.search).toBe("?period=month&user=me");
    expect(urls.some((url) => url.includes("bucket=day") && url.includes("user=me"))).toBe(true);
  });

  it("says that nothing was used, and that nothing is known of the slots", async () => {
    serve(report({ groups: [], used_seconds: 0, lost_seconds: 0, pools: [pool(0)] }));
    open("/usage?period=day");
    expect(await screen.findByText("Nothing was used in this period")).toBeVisible();
    expect(screen.getByText("Nothing was recorded in this period")).toBeVisible();
  });

  it("shows a refusal in its place", async () => {
    serve(null);
    open("/usage");
    expect((await screen.findAllByText(/Later\./)).length).toBeGreaterThan(0);
  });
});

describe("the data of the charts", () => {
  it("stacks groups and puts what was lost on top", () => {
    const { bars, parts } = buildUsageBars(report({}), "project", (name) => name);
    expect(parts.map((part) => part.label)).toEqual(["lab", "games", "lost"]);
    expect(bars.map((bar) => bar.values)).toEqual([
      [1, 1, 0],
      [2, 0, 0.5],
    ]);
    expect(bars.map((bar) => bar.label)).toEqual(["23 Nov", "24 Nov"]);
  });

  it("adds up groups beyond the colours", () => {
    const many = Array.from({ length: 10 }, (_, i) => group(`p${i}`, [3600]));
    const { parts, bars } = buildUsageBars(
      report({ groups: many, lost_seconds: 0, rest: group("rest", [7200]) }),
      "project",
      (name) => name,
    );
    expect(parts.at(-1)?.label).toBe("others");
    expect(bars[0]?.values.at(-1)).toBe(5);
  });

  it("leaves a part of which nothing was recorded open", () => {
    const [first, second] = buildOccupancyBars(report({}), [pool(3600)]);
    expect(first?.unknown).toBe("nothing was recorded");
    expect(second?.values).toEqual([1, 0.5, 2.5]);
    expect(second?.unknown).toBeUndefined();
  });

  it.each([
    [0, [0, 1]],
    [3.2, [0, 1, 2, 3, 4]],
    [0.0022, [0, 0.001, 0.002, 0.003]],
    [40, [0, 10, 20, 30, 40]],
  ])("has round ticks up to %f", (highest, expected) => {
    expect(chooseTicks(highest)).toEqual(expected);
  });

  it("reads only what an address may hold", () => {
    expect(readUsageSearch({ by: "user", period: "month", pool: "lab", user: "me" })).toEqual({
      by: "user",
      period: "month",
      pool: "lab",
      user: "me",
    });
    expect(readUsageSearch({ by: "colour", period: 7 })).toEqual({});
    const now = Date.parse("2026-11-24T12:34:00Z");
    expect(buildUsageParameters({ period: "day" }, now)).toMatchObject({
      bucket: "hour",
      since: "2026-11-23T13:00:00.000Z",
    });
  });

  it.each([
    [0, "0"],
    [30, "< 0.01"],
    [3600, "1.00"],
    [36_000, "10.0"],
    [3_600_000, "1,000"],
  ])("writes %d seconds as hours", (seconds, text) => {
    expect(formatHours(seconds)).toBe(text);
  });
});
