/** The page of runs: what it asks the server, what it shows, and what its actions send. */
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const asked: URL[] = [];
const sent: { method: string; path: string; body: Record<string, unknown> }[] = [];
let runs: object[] = [];
let groups: object[] = [];
let view: object | null = null;
let broken = false;
let searched: number | null = null;

const run = (seed: number, changes: object = {}) => ({
  id: `run_${seed}`,
  experiment_id: "cart-0123456789abcdef",
  project: "lab",
  seed,
  replicate: 0,
  state: "running",
  cause: null,
  failure: null,
  created_by: "eva",
  created_at: "2026-11-01T10:00:00Z",
  started_at: null,
  finished_at: null,
  progress: { env_step: 1000 * seed, update: 0, episode: 0, fraction: null },
  latest_evaluation: null,
  best_evaluation: null,
  values: { name: "cart", agent: "dqn", env: "CartPole-v1", "evaluation/mean.best": 400 + seed },
  ...changes,
});
const VIEW = {
  id: "viw_1",
  project: "lab",
  name: "Best of DQN",
  owner: "ada",
  visibility: "project",
  created_at: "2026-11-01T10:00:00Z",
  updated_at: "2026-11-01T10:00:00Z",
  problems: [],
};
const FAULT = "at character 1: is no field of this list; did you mean agent?";
const STATE = {
  filter: "agent:dqn",
  sort: "-evaluation/mean.best",
  columns: ["name", "seed"],
  pinned: ["name"],
  widths: {},
  group_by: [],
  show: "table",
  split: null,
  board: {},
};
const page = (items: object[]) => ({ items, next_cursor: null });

function answer(url: URL, init: RequestInit): [number, object] {
  const path = url.pathname.replace("/api/v1", "");
  if (path === "/session") {
    const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
    const permissions = ["project.read", "run.submit", "run.control_own"];
    const projects = [{ ...lab, permissions }];
    return [200, { user: "eva", projects, permissions: [], csrf_token: "x", scopes: [] }];
  }
  if (init.method && init.method !== "GET") {
    const body = init.body ? (JSON.parse(String(init.body)) as Record<string, unknown>) : {};
    sent.push({ method: init.method, path: `${path}${url.search}`, body });
    if (path.endsWith("/runs:act")) {
      const counts = { matched: 2, not_permitted: 1, same_jobs: 3, refused: [], next_after: null };
      return [200, { ...counts, done: body.dry_run ? [] : ["run_0", "run_1"] }];
    }
    return [201, { ...VIEW, id: "viw_2", state: STATE, usable_state: STATE }];
  }
  asked.push(url);
  if (url.searchParams.get("filter")?.startsWith("agnet")) {
    const errors = [{ pointer: "query/filter", code: "unknown_filter_field", message: FAULT }];
    return [422, { code: "unknown_filter_field", detail: FAULT, position: 0, errors }];
  }
  if (path === "/views/viw_2")
    return [200, { ...VIEW, id: "viw_2", state: STATE, usable_state: STATE }];
  if (path === "/views/viw_1")
    return view === null
      ? [404, { code: "not_found", detail: "There is no such view in this project." }]
      : [200, view];
  if (path.endsWith("/runs:groups")) {
    const total = { runs: 2, states: { running: 2 }, by: {}, name: "", filter: "" };
    return [200, page(url.searchParams.has("by") ? groups : [total])];
  }
  if (path.endsWith("/runs:keys"))
    return [
      200,
      {
        fields: [],
        members: ["agent.lr"],
        series: ["evaluation/mean"],
        thresholds: ["solved"],
        searched_runs: searched,
        is_complete: searched === null,
      },
    ];
  if (path.endsWith("/views")) return [200, page([{ ...VIEW, state: STATE }])];
  if (path === "/runs" && broken)
    return [400, { code: "x", detail: "The list cannot be read.", request_id: "req-7" }];
  if (path === "/runs") return [200, page(runs)];
  if (path.startsWith("/runs/run_"))
    return [200, { ...run(0), definition: { kind: "rl", loop: { env_steps: 100 } } }];
  return [200, page([])];
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

/** The last request for the list of runs. */
const lastList = () => asked.filter((url) => url.pathname.endsWith("/runs")).at(-1);
const parameters = () => new URLSearchParams(window.location.search);

beforeEach(() => {
  asked.length = 0;
  sent.length = 0;
  runs = [run(0), run(1)];
  groups = [];
  view = { ...VIEW, state: STATE, usable_state: STATE };
  broken = false;
  searched = null;
  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    const url = new URL(address, "http://localhost");
    if (url.pathname.includes("/events")) return new Promise(() => undefined);
    const [status, body] = answer(url, init);
    return new Response(JSON.stringify(body), { status });
  });
});

const table = () => screen.findByRole("table", { name: "Runs" });

describe("the table of runs", () => {
  it("asks for the values of its columns and shows them", async () => {
    open("/p/lab/runs?show=table");
    const rows = within(await table()).getAllByRole("row");
    expect(rows[1]).toHaveTextContent("cart");
    expect(rows[1]).toHaveTextContent("400");
    expect(lastList()?.searchParams.getAll("columns")).toContain("evaluation/mean.best");
    expect(lastList()?.searchParams.get("sort")).toBe("-created");
  });

  it("sorts on the server, numbers from the highest, and keeps the order in the URL", async () => {
    open("/p/lab/runs?show=table");
    await userEvent.click(
      within(await table()).getByRole("button", { name: /^evaluation\/mean best/ }),
    );
    await waitFor(() => expect(lastList()?.searchParams.get("sort")).toBe("-evaluation/mean.best"));
    expect(parameters().get("sort")).toBe("-evaluation/mean.best");
  });

  it("sorts by a second column with Shift, marks both, and leaves one out by the menu", async () => {
    open("/p/lab/runs?show=table&sort=agent");
    const user = userEvent.setup();
    const heading = async (name: RegExp) => within(await table()).getByRole("button", { name });
    const best = /^evaluation\/mean best/;
    await user.keyboard("{Shift>}");
    await user.click(await heading(best));
    await waitFor(() => expect(parameters().get("sort")).toBe("agent,-evaluation/mean.best"));
    expect(await heading(/^Agent\s*1/)).toHaveTextContent("1. key of the order, ascending");
    expect(await heading(best)).toHaveTextContent("2. key of the order, descending");
    expect(lastList()?.searchParams.get("sort")).toBe("agent,-evaluation/mean.best");
    await user.click(await heading(best));
    await waitFor(() => expect(parameters().get("sort")).toBe("agent,evaluation/mean.best"));
    await user.keyboard("{/Shift}");
    await user.click(within(await table()).getByRole("button", { name: "Column Seed" }));
    await user.click(await screen.findByRole("menuitem", { name: "Sort by it as well" }));
    await waitFor(() => expect(parameters().get("sort")).toBe("agent,evaluation/mean.best,-seed"));
    await user.click(within(await table()).getByRole("button", { name: "Column Agent" }));
    await user.click(await screen.findByRole("menuitem", { name: "Leave out of the order" }));
    await waitFor(() => expect(parameters().get("sort")).toBe("evaluation/mean.best,-seed"));
    await user.click(await heading(/^Seed/));
    await waitFor(() => expect(parameters().get("sort")).toBe("seed"));
    expect(await heading(/^Seed/)).not.toHaveTextContent("1");
  });

  it("pins, hides and widens columns by their headings", async () => {
    open("/p/lab/runs?show=table&columns=name,seed,agent");
    await userEvent.click(within(await table()).getByRole("button", { name: "Column Agent" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Pin to the left" }));
    await waitFor(() => expect(parameters().get("pinned")).toBe("name,agent"));
    const heads = within(await table()).getAllByRole("columnheader");
    expect(heads.map((head) => head.textContent)).toEqual(["", "Name", "Agent", "Seed"]);
    screen.getByRole("separator", { name: "Width of Seed" }).focus();
    await userEvent.keyboard("{ArrowRight}");
    await waitFor(() => expect(parameters().get("widths")).toBe("seed:80"));
    await userEvent.click(within(await table()).getByRole("button", { name: "Column Seed" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Hide the column" }));
    await waitFor(() => expect(parameters().get("columns")).toBe("name,agent"));
  });

  it("takes further columns from the picker", async () => {
    open("/p/lab/runs?show=table&columns=name");
    await table();
    await userEvent.click(screen.getByRole("button", { name: "Columns" }));
    await userEvent.click(await screen.findByRole("button", { name: "evaluation/mean, mean" }));
    await waitFor(() => expect(parameters().get("columns")).toBe("name,evaluation/mean.mean10"));
    await userEvent.click(screen.getByRole("checkbox", { name: "agent.lr" }));
    await waitFor(() =>
      expect(lastList()?.searchParams.getAll("columns")).toEqual([
        "name",
        "evaluation/mean.mean10",
        "agent.lr",
      ]),
    );
  });

  it("takes the first crossings of thresholds from the picker", async () => {
    open("/p/lab/runs?show=table&columns=name");
    await table();
    await userEvent.click(screen.getByRole("button", { name: "Columns" }));
    await userEvent.click(await screen.findByRole("button", { name: "solved, env_step" }));
    await waitFor(() => expect(parameters().get("columns")).toBe("name,reached.solved"));
    await userEvent.click(screen.getByRole("button", { name: "solved, seconds" }));
    await waitFor(() =>
      expect(parameters().get("columns")).toBe("name,reached.solved,reached.solved.seconds"),
    );
    expect(screen.getByRole("button", { name: "solved, env_step" })).toHaveAttribute(
      "aria-pressed",
      "true",
    );
  });

  it("says of how many runs the panels are where the filter finds more", async () => {
    searched = 2_000;
    open("/p/lab/runs?show=board&filter=agent:dqn");
    expect(
      await screen.findByText(/series of the newest 2,000 runs that the filter finds/),
    ).toBeVisible();
  });

  it("says nothing of it where the panels are those of all runs", async () => {
    open("/p/lab/runs?show=board&filter=agent:dqn");
    expect(await screen.findByText("evaluation/mean")).toBeVisible();
    expect(screen.queryByText(/runs that the filter finds/)).toBeNull();
  });

  it("shows the terms of the filter as chips, which remove them", async () => {
    open("/p/lab/runs?show=table&filter=agent:dqn+seed%3C3");
    await table();
    await userEvent.click(screen.getByRole("button", { name: "Remove agent:dqn" }));
    await waitFor(() => expect(parameters().get("filter")).toBe("seed<3"));
    expect(screen.getByLabelText("Filter", { selector: "input" })).toHaveValue("seed<3");
  });

  it("says what to do where it is empty, where nothing matches, and where it fails", async () => {
    runs = [];
    open("/p/lab/runs?show=table&filter=agent:none");
    await userEvent.click(await screen.findByRole("button", { name: "Clear the filter" }));
    await screen.findByText("No runs yet");
    expect(screen.getByText(/palestra submit/)).toBeInTheDocument();
  });

  it("says where a filter cannot be read, until it is corrected", async () => {
    open("/p/lab/runs?show=table");
    await table();
    const filter = screen.getByLabelText("Filter", { selector: "input" });
    await userEvent.type(filter, "agnet:dqn");
    expect(await screen.findByText(FAULT)).toBeVisible();
    await userEvent.clear(filter);
    await userEvent.type(filter, "agent:dqn");
    await waitFor(() => expect(screen.queryByText(FAULT)).toBeNull());
    expect(within(await table()).getAllByRole("row")).toHaveLength(3);
  });

  it("names the request where it fails", async () => {
    broken = true;
    open("/p/lab/runs?show=table");
    expect(await screen.findByText("The list cannot be read.")).toBeInTheDocument();
    expect(screen.getByText("req-7")).toBeInTheDocument();
  });
});

describe("groups of runs", () => {
  beforeEach(() => {
    const group = { runs: 2, n: 2, states: { running: 2 }, mean: 400.5, stderr: 0.5 };
    groups = [
      { ...group, by: { agent: "dqn" }, name: "agent=dqn", filter: "agent:dqn" },
      { ...group, by: { agent: "ppo" }, name: "agent=ppo", filter: "agent:ppo", mean: null, n: 0 },
    ];
  });

  it("show n, mean and standard error, and unfold to their runs", async () => {
    open("/p/lab/runs?show=table&group=agent&filter=seed%3C3");
    const rows = within(await table()).getAllByRole("row");
    expect(rows[1]).toHaveTextContent("dqn2 runs");
    expect(rows[1]).toHaveTextContent("400.50 ± 0.50 sen = 2");
    expect(rows[2]).toHaveTextContent("no value");
    await userEvent.click(screen.getByRole("button", { name: "Runs of dqn" }));
    await waitFor(() => expect(screen.getAllByText("cart")).toHaveLength(2));
    expect(lastList()?.searchParams.get("filter")).toBe("seed<3 agent:dqn");
    const groupsAsked = asked.find((url) => url.searchParams.has("by"));
    expect(groupsAsked?.searchParams.get("metric")).toBe("evaluation/mean.last");
  });

  it("are made from the heading of a column", async () => {
    open("/p/lab/runs?show=table");
    await userEvent.click(within(await table()).getByRole("button", { name: "Column Agent" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Group by it" }));
    await waitFor(() => expect(parameters().get("group")).toBe("agent"));
    await screen.findByRole("button", { name: "Runs of ppo" });
  });
});

describe("a saved view", () => {
  it("is what its URL shows, with changes beside it", async () => {
    open("/p/lab/runs?view=viw_1");
    await table();
    expect(lastList()?.searchParams.get("filter")).toBe("agent:dqn");
    expect(lastList()?.searchParams.get("sort")).toBe("-evaluation/mean.best");
    expect(asked.some((url) => url.searchParams.get("sort") === "-created")).toBe(false);
    await userEvent.click(screen.getByRole("button", { name: "Remove agent:dqn" }));
    await screen.findByRole("button", { name: "Best of DQN (changed)" });
    await waitFor(() => expect(lastList()?.searchParams.get("filter")).toBeNull());
  });

  it("is found by an address without a project", async () => {
    open("/runs?view=viw_1");
    await table();
    expect(window.location.pathname).toBe("/p/lab/runs");
    expect(parameters().get("view")).toBe("viw_1");
  });

  it("says which field no longer exists, and shows the rest", async () => {
    const message = "`loss/tdd>1` is a series of no run; did you mean loss/td?";
    const problems = [{ pointer: "/state/filter", code: "unknown_filter_field", message }];
    const saved = { ...STATE, filter: "agent:dqn loss/tdd>1" };
    view = { ...VIEW, state: saved, usable_state: STATE, problems };
    open("/p/lab/runs?view=viw_1");
    await screen.findByText("Best of DQN is shown without what no longer exists");
    expect(screen.getByText(/did you mean loss\/td\?/)).toBeInTheDocument();
    await table();
    expect(lastList()?.searchParams.get("filter")).toBe("agent:dqn");
  });

  it("that is gone leaves all runs", async () => {
    view = null;
    open("/p/lab/runs?show=table&view=viw_1");
    await screen.findByText("The view cannot be shown");
    await table();
  });

  it("is saved with what the page shows", async () => {
    open("/p/lab/runs?show=table&filter=agent:dqn&group=agent&smooth=0.5");
    await userEvent.click(await screen.findByRole("button", { name: "Views" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Save as a new view…" }));
    await userEvent.type(await screen.findByLabelText("Name"), "Mine");
    await userEvent.click(screen.getByLabelText("For all members of lab"));
    await userEvent.click(screen.getByRole("button", { name: "Save the view" }));
    await waitFor(() => expect(parameters().get("view")).toBe("viw_2"));
    expect(sent[0]).toMatchObject({
      method: "POST",
      path: "/views?project=lab",
      body: {
        name: "Mine",
        visibility: "project",
        state: { filter: "agent:dqn", group_by: ["agent"], show: "table" },
      },
    });
  });
});

describe("the comparison of selected runs", () => {
  it("takes two at least, and is reached by its button and by the key c", async () => {
    open("/p/lab/runs?show=table");
    await userEvent.click(await screen.findByRole("checkbox", { name: /Select seed 0/ }));
    const bar = await screen.findByRole("region", { name: "Selected runs" });
    const refused = within(bar).getByRole("button", { name: "Compare" });
    expect(refused).toHaveAttribute("aria-disabled", "true");
    await userEvent.keyboard("c");
    expect(window.location.pathname).toBe("/p/lab/runs");
    await userEvent.click(screen.getByRole("checkbox", { name: /Select seed 1/ }));
    const link = within(bar).getByRole("link", { name: "Compare" });
    expect(link).toHaveAttribute("href", expect.stringContaining("/p/lab/compare?runs=run_0"));
    (document.activeElement as HTMLElement).blur();
    await userEvent.keyboard("c");
    await waitFor(() => expect(window.location.pathname).toBe("/p/lab/compare"));
    expect(parameters().get("runs")).toBe("run_0,run_1");
  });
});

describe("actions on many runs", () => {
  // What may be undone for some seconds may be so for as long as a busy machine takes.
  beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));

  const choose = async (verb: string) => {
    open("/p/lab/runs?show=table&filter=agent:dqn");
    const box = await screen.findByRole("checkbox", { name: /Select seed 0/ });
    await userEvent.click(box);
    const bar = await screen.findByRole("region", { name: "Selected runs" });
    await userEvent.click(within(bar).getByRole("button", { name: "Select all 2 that match" }));
    await userEvent.click(within(bar).getByRole("button", { name: `${verb}…` }));
    return screen.findByRole("dialog");
  };

  it("count those that match, name packs and others, and cancel after the number is typed", async () => {
    const dialog = await choose("Cancel");
    const submit = await within(dialog).findByRole("button", { name: "Cancel 2 runs" });
    expect(dialog).toHaveTextContent("3 more runs that are not selected train in the same packs");
    expect(dialog).toHaveTextContent("1 selected run of other people is left alone");
    expect(submit).toBeDisabled();
    await userEvent.type(within(dialog).getByRole("textbox"), "2");
    await userEvent.click(submit);
    await screen.findByText(/2 runs will be cancelled/);
    await userEvent.click(screen.getByRole("button", { name: "Undo" }));
    await vi.advanceTimersByTimeAsync(60_000);
    const selection = { filter: "agent:dqn" };
    expect(sent.map(({ body }) => body)).toEqual([{ action: "cancel", selection, dry_run: true }]);
  });

  it("are done some seconds later, unless that is called off", async () => {
    const dialog = await choose("Cancel");
    await userEvent.type(within(dialog).getByRole("textbox"), "2");
    await userEvent.click(await within(dialog).findByRole("button", { name: "Cancel 2 runs" }));
    await screen.findByText(/2 runs will be cancelled/);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(60_000);
    const selection = { filter: "agent:dqn" };
    expect(sent[1]?.body).toMatchObject({ action: "cancel", selection, dry_run: false });
  });

  it("resume at once, which pausing the same runs undoes", async () => {
    const dialog = await choose("Resume");
    await userEvent.click(await within(dialog).findByRole("button", { name: "Resume 2 runs" }));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(sent).toHaveLength(3));
    expect(sent[2]?.body).toMatchObject({
      action: "pause",
      selection: { runs: ["run_0", "run_1"] },
    });
  });
});
