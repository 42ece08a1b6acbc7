import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";
import { formatHours, parseHours } from "@/lib/hours";
import { HEARTBEAT_MS } from "@/live/useLiveQueue";

const sent: string[] = [];
let refusal: object | null = null;
let pools: object[] = [];
let workers: object[] = [];
let tokens: object[] = [];
let jobs: object[] = [];

const pool = (name: string, changes: object = {}) => ({
  id: `pol_${name}`,
  name,
  description: "",
  paused_at: null,
  pause_reason: "",
  default_wall_seconds: 86_400,
  max_wall_seconds: null,
  shows_names: false,
  created_at: "2026-10-02T08:00:00Z",
  projects: [{ project: "lab", name: "Lab", share: 1, since: "2026-10-02T08:00:00Z" }],
  workers: 1,
  registered_workers: 2,
  slots: 4,
  free_slots: 1,
  queued: 0,
  running: 0,
  all_queued: 7,
  all_running: 3,
  ...changes,
});
const slot = (index: number, changes: object = {}) => ({
  index,
  attempt_id: null,
  job_id: null,
  run_ids: [],
  busy: false,
  user: null,
  project: null,
  ...changes,
});
const worker = (name: string, changes: object = {}) => ({
  id: `wrk_${name}`,
  name,
  pool: "gpu",
  host: "rack3",
  state: "online",
  version: "0.1.0",
  slots: [slot(0)],
  gpus: [],
  registered_at: "2026-10-02T08:00:00Z",
  last_heartbeat_at: "2026-10-02T08:00:00Z",
  secret_rotation: null,
  secret_since: null,
  ...changes,
});
const token = (id: string, name: string, changes: object = {}) => ({
  id,
  pool: "gpu",
  name,
  created_by: "ada",
  created_at: "2026-10-02T08:00:00Z",
  expires_at: null,
  last_used_at: null,
  secret: null,
  ...changes,
});

function answer({ pathname }: URL, ofServer: string[]): object | undefined {
  const lab = { project_id: "prj_lab", slug: "lab", name: "Lab", role: "member", archived: false };
  const parts = pathname.replace("/api/v1/", "").split("/");
  if (parts[0] === "session")
    return {
      user: "eva",
      is_admin: ofServer.length > 0,
      projects: [{ ...lab, permissions: [] }],
      permissions: ofServer,
      csrf_token: "x",
      scopes: [],
    };
  if (parts[2] === "queue") return { items: jobs, next_cursor: null, lanes: [] };
  if (parts[2] === "shares") return { projects: [], period_seconds: 604_800 };
  if (parts[2] === "windows") return { items: [], next_cursor: null };
  if (parts[2] === "enrolment-tokens") return { items: tokens, next_cursor: null };
  if (parts[0] === "pools" && parts.length === 2)
    return pools.find((one) => (one as { name: string }).name === parts[1]);
  const lists: Record<string, object[]> = {
    pools,
    workers,
    projects: [
      { id: "prj_lab", slug: "lab", name: "Lab" },
      { id: "prj_atari", slug: "atari", name: "Atari" },
    ],
  };
  return { items: lists[parts[0] ?? ""] ?? [], next_cursor: null };
}

function open(path: string, ofServer: string[] = ["server.pools", "server.projects"]): void {
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (url.includes("/events:")) return new Promise(() => undefined);
    const changes = ["POST", "PUT", "PATCH", "DELETE"].includes(init.method ?? "");
    if (changes) sent.push(`${init.method} ${url} ${init.body ?? ""}`.trim());
    if (changes && refusal !== null)
      return Promise.resolve(new Response(JSON.stringify(refusal), { status: 409 }));
    const body = changes
      ? { ...pool("gpu"), ...token("tok_new", "rack 4", { secret: "plw_the_secret" }), name: "gpu" }
      : answer(new URL(url, "http://x"), ofServer);
    return Promise.resolve(new Response(JSON.stringify(body ?? {}), { status: body ? 200 : 404 }));
  });
  window.history.replaceState(null, "", path);
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
  refusal = null;
  pools = [pool("gpu")];
  workers = [worker("rack3-a")];
  tokens = [];
  jobs = [];
});

describe("the list of pools", () => {
  it("shows slots, waiting jobs of all projects, and what is paused", async () => {
    pools = [
      pool("gpu"),
      pool("old", { paused_at: "2026-11-01T08:00:00Z", pause_reason: "Moved" }),
    ];
    open("/admin/pools");
    const table = await screen.findByRole("table", { name: "Pools" });
    const [, gpu, old] = within(table).getAllByRole("row");
    expect(gpu).toHaveTextContent(/gpu3 of 4/);
    expect(gpu).toHaveTextContent("24 h by default");
    expect(gpu).toHaveTextContent("7");
    expect(within(old as HTMLElement).getByTitle("Moved")).toHaveTextContent("paused");
  });

  it("teaches how to begin, and creates a pool with its projects and limits", async () => {
    pools = [];
    open("/admin/pools");
    expect(await screen.findByText("No pool yet")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "New pool" }));
    await userEvent.type(await screen.findByLabelText(/^Name/), "gpu");
    await userEvent.type(screen.getByLabelText(/^Maximum wall time/), "1,5");
    await userEvent.type(screen.getByLabelText(/^Default wall time/), "x");
    const send = screen.getByRole("button", { name: "Create", hidden: true });
    expect(send).toBeDisabled();
    await userEvent.clear(screen.getByLabelText(/^Default wall time/));
    await userEvent.click(send);
    await waitFor(() =>
      expect(sent).toEqual([
        'POST /api/v1/pools {"name":"gpu","projects":[],"description":"",' +
          '"default_wall_seconds":null,"max_wall_seconds":5400,"shows_names":false}',
      ]),
    );
  });
});

describe("a pool", () => {
  it("is paused with a reason that everybody reads, and resumed", async () => {
    open("/admin/pools/gpu");
    await userEvent.click(await screen.findByRole("button", { name: "Pause…" }));
    await userEvent.type(await screen.findByLabelText(/^Reason/), "Driver update");
    pools = [pool("gpu", { paused_at: "2026-11-01T08:00:00Z", pause_reason: "Driver update" })];
    await userEvent.click(screen.getByRole("button", { name: "Pause", hidden: true }));
    expect(await screen.findByText("Driver update", { selector: "p" })).toBeInTheDocument();
    await userEvent.click(await screen.findByRole("button", { name: "Resume", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual([
        'POST /api/v1/pools/gpu:pause {"reason":"Driver update"}',
        "POST /api/v1/pools/gpu:resume",
      ]),
    );
  });

  it("gets another share for a project, and admits no more of it", async () => {
    open("/admin/pools/gpu");
    const share = await screen.findByLabelText("Share of lab");
    await userEvent.clear(share);
    await userEvent.type(share, "0{Enter}");
    expect(share).toHaveValue("1");
    await userEvent.clear(share);
    await userEvent.type(share, "2.5{Enter}");
    await userEvent.click(screen.getByRole("button", { name: "Remove lab from the pool" }));
    await waitFor(() =>
      expect(sent).toEqual([
        'PUT /api/v1/pools/gpu/projects/lab {"share":2.5}',
        "DELETE /api/v1/pools/gpu/projects/lab",
      ]),
    );
  });

  it("makes an enrolment token, and shows its secret once in the command for a machine", async () => {
    open("/admin/pools/gpu");
    await userEvent.click(await screen.findByRole("button", { name: "New token" }));
    await userEvent.type(await screen.findByLabelText(/^Name/), "rack 4");
    await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
    const command = await screen.findByText(/palestra worker --server/);
    expect(command).toHaveTextContent(
      `(umask 077; printf '%s\\n' 'plw_the_secret' > worker.token) ` +
        `palestra worker --server ${window.location.origin} --token-file worker.token --slots 1`,
    );
    await userEvent.click(screen.getByRole("button", { name: "I have copied it", hidden: true }));
    await waitFor(() => expect(screen.queryByText(/plw_the_secret/)).toBeNull());
    expect(sent).toEqual([
      'POST /api/v1/pools/gpu/enrolment-tokens {"name":"rack 4","expires_in_days":30}',
    ]);
  });

  it("lists its tokens, and revokes one after a question", async () => {
    tokens = [token("tok_1", "rack 3"), token("tok_2", "workers")];
    open("/admin/pools/gpu");
    await userEvent.click(await screen.findByRole("button", { name: "Revoke workers" }));
    const dialog = await screen.findByRole("dialog", { name: "Revoke workers?" });
    await userEvent.click(within(dialog).getByRole("button", { name: "Revoke", hidden: true }));
    await waitFor(() => expect(sent).toEqual(["DELETE /api/v1/pools/gpu/enrolment-tokens/tok_2"]));
  });

  /** Chooses an item of a worker's menu. Labels are found faster than roles in a whole page. */
  const choose = async (name: string, item: string | RegExp) => {
    await userEvent.click(
      await screen.findByLabelText(`Actions on ${name}`, { selector: "button" }),
    );
    // The menu before it may still fade out.
    const menu = await screen.findByRole("menu", { name: `Actions on ${name}` });
    await userEvent.click(within(menu).getByText(item));
  };

  it("drains and undrains its workers, and rotates their secrets", async () => {
    workers = [
      worker("a", { secret_rotation: "unsupported" }),
      worker("b", { state: "draining" }),
      worker("c", { pool: "other" }),
      worker("d"),
    ];
    open("/admin/pools/gpu");
    await choose("a", /^Drain/);
    await choose("b", "End draining");
    await choose("d", "Rotate its secret");
    await waitFor(() =>
      expect(sent).toEqual([
        "POST /api/v1/workers/wrk_a:drain",
        "POST /api/v1/workers/wrk_b:undrain",
        "POST /api/v1/workers/wrk_d:rotate-secret",
      ]),
    );
    expect(screen.getByText("needs an upgrade")).toBeInTheDocument();
    expect(screen.queryByLabelText("Actions on c")).toBeNull();
  });

  it("says why a worker drains by itself", async () => {
    const reason = "3 attempts in a row could not be started. The disk is full.";
    workers = [
      worker("a", { state: "draining", drain_reason: reason }),
      worker("b", { state: "draining", drain_reason: null }),
    ];
    open("/admin/pools/gpu");
    const shown = await screen.findByRole("status");
    expect(shown).toHaveTextContent("The worker a takes no further jobs");
    expect(shown).toHaveTextContent(reason);
  });

  it("forgets a worker after a question", async () => {
    open("/admin/pools/gpu");
    await choose("rack3-a", "Forget…");
    const dialog = await screen.findByRole("dialog", { name: "Forget rack3-a?" });
    expect(sent).toEqual([]);
    await userEvent.click(within(dialog).getByText("Forget"));
    await waitFor(() => expect(sent).toEqual(["POST /api/v1/workers/wrk_rack3-a:forget"]));
  });

  it("keeps a worker's menu open while the list is polled", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    workers = [worker("a"), worker("b")];
    open("/admin/pools/gpu");
    await userEvent.click(await screen.findByRole("button", { name: "Actions on a" }));
    const item = await screen.findByRole("menuitem", { name: /^Drain/ });
    workers = [worker("a", { state: "draining", version: "0.2.0" }), worker("b")];
    await vi.advanceTimersByTimeAsync(HEARTBEAT_MS);
    expect(await screen.findByText("0.2.0")).toBeInTheDocument();
    expect(item).toHaveTextContent("End draining");
    expect(item).toBeVisible();
  });

  it("says why the server does not delete it", async () => {
    refusal = { code: "pool_in_use", detail: "1 workers of the pool are alive." };
    open("/admin/pools/gpu");
    await userEvent.click(await screen.findByRole("button", { name: "Delete…" }));
    await userEvent.click(await screen.findByRole("button", { name: "Delete", hidden: true }));
    expect(await screen.findByText("1 workers of the pool are alive.")).toBeInTheDocument();
    expect(sent).toEqual(["DELETE /api/v1/pools/gpu"]);
  });

  it("is not managed by those who are no administrators", async () => {
    open("/admin/pools/gpu", []);
    expect(await screen.findByText("You may not manage pools")).toBeInTheDocument();
  });
});

describe("workers", () => {
  it("show a foreign job as busy, with names where the server sends them", async () => {
    workers = [
      worker("rack3-a", {
        slots: [
          slot(0, { busy: true }),
          slot(1, { busy: true, user: "ada", project: "atari" }),
          slot(2),
        ],
      }),
    ];
    open("/workers", []);
    const [first, second, third] = await screen.findAllByRole("listitem");
    expect(first).toHaveTextContent(/^slot 0busy$/);
    expect(second).toHaveTextContent("slot 1busyada, atari");
    expect(third).toHaveTextContent("slot 2free");
    expect(screen.getByText("2 of 3 slots busy")).toBeInTheDocument();
    expect(screen.queryByRole("link", { name: "Manage pools" })).toBeNull();
  });

  it("say why one drains by itself", async () => {
    const reason = "3 attempts in a row could not be started. The disk is full.";
    workers = [worker("a", { state: "draining", drain_reason: reason })];
    open("/workers", []);
    expect(await screen.findByRole("status")).toHaveTextContent(reason);
  });

  it("lie in sections where there are several pools, and say why one is paused", async () => {
    pools = [pool("gpu"), pool("cpu", { paused_at: "2026-11-01T08:00:00Z", pause_reason: "Fire" })];
    open("/workers", []);
    const gpu = await screen.findByRole("region", { name: "Pool gpu" });
    expect(within(gpu).getByText("rack3-a")).toBeInTheDocument();
    expect(screen.getByRole("status")).toHaveTextContent("The pool cpu is paused");
    expect(screen.getByRole("status")).toHaveTextContent("Fire");
    const cpu = screen.getByRole("region", { name: "Pool cpu" });
    expect(cpu).toHaveTextContent("No worker belongs to this pool yet");
  });

  it("send an administrator without machines to the tokens, and others to an administrator", async () => {
    workers = [];
    open("/workers");
    const way = await screen.findByRole("link", { name: "Make a token of the pool gpu" });
    expect(way).toHaveAttribute("href", "/admin/pools/gpu");
  });

  it("tell a user whose project no pool admits whom to ask", async () => {
    workers = [];
    pools = [];
    open("/workers", []);
    expect(await screen.findByText("No pool admits your projects")).toBeInTheDocument();
    expect(screen.getByText(/Ask an administrator/)).toBeInTheDocument();
  });
});

describe("the queue", () => {
  it("says of a pool in which a job waits why it is paused, and of no other", async () => {
    const paused = { paused_at: "2026-11-01T08:00:00Z" };
    pools = [
      pool("gpu", { ...paused, pause_reason: "Driver update" }),
      pool("cpu", { ...paused, pause_reason: "Fire" }),
    ];
    jobs = [
      {
        id: "job_1",
        project: "lab",
        experiment_id: "cartpole-1",
        run_ids: ["run_1"],
        seeds: [0],
        schedule: "train",
        state: "queued",
        waiting: "The pool gpu is paused, and starts no job until it is resumed: Driver update.",
        position: 1,
        pool: "gpu",
        priority: 0,
        resources: {},
        limits: {},
        priority_class: "normal",
        attempts: 0,
        created_at: "2026-11-01T09:00:00Z",
        created_by: "eva",
        started_at: null,
      },
    ];
    open("/p/lab/queue", []);
    expect(await screen.findByText(/starts no job until it is resumed/)).toBeInTheDocument();
    expect(screen.getByRole("status")).toHaveTextContent("The pool gpu is paused");
    expect(screen.getByRole("status")).toHaveTextContent("Driver update");
    expect(screen.queryByText("Fire")).toBeNull();
  });
});

describe("hours", () => {
  it.each([
    [null, ""],
    [86_400, "24"],
    [5_400, "1.5"],
    [60, "0.0167"],
  ] as const)("write %s seconds as %j", (seconds, text) => {
    expect(formatHours(seconds)).toBe(text);
    expect(parseHours(text)).toBe(seconds);
  });

  it.each(["0", "-1", "a day", "1e2"])("are not %j", (text) => {
    expect(parseHours(text)).toBeNaN();
  });
});
