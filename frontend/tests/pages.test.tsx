import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

type Answer = { status?: number; body: unknown };
type Routes = Record<string, Answer | ((init: RequestInit) => Answer | Promise<Answer>)>;

const member = (slug: string, role = "maintainer", name = slug) => ({
  project_id: `prj_${slug}`,
  slug,
  name,
  role,
  archived: false,
  permissions: ["project.read", "run.submit"],
});
const SESSION = {
  user: "ada",
  user_id: "usr_ada",
  display_name: "",
  is_admin: false,
  project: "default",
  projects: [member("default")],
  permissions: ["account"],
  scopes: ["read"],
  csrf_token: "csrf-1",
  via: "cookie",
  setup_needed: false,
};
const problem = (status: number, detail: string) => ({
  status,
  body: {
    type: "about:blank",
    title: "x",
    status,
    code: "some_code",
    detail,
    request_id: "req-42",
    errors: [],
  },
});
const calls: { url: string; init: RequestInit }[] = [];

/** Whether a call opens the live connection for a project; `null` for all projects. */
function follows({ url, init }: (typeof calls)[number], project: string | null): boolean {
  if (url !== "/api/v1/events:stream") return false;
  const { subscriptions } = JSON.parse(String(init.body)) as {
    subscriptions: { project: string | null }[];
  };
  return subscriptions.some((one) => one.project === project);
}

function serve(routes: Routes): void {
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    calls.push({ url, init });
    if (url.includes("/events")) return new Promise(() => undefined);
    const key = `${init.method ?? "GET"} ${url.replace("/api/v1", "").split("?")[0]}`;
    const found = routes[key] ?? OF_HOME[key] ?? problem(404, "There is no such route.");
    const { status = 200, body } = await (typeof found === "function" ? found(init) : found);
    return new Response(JSON.stringify(body), { status });
  });
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

const LOGIN_LINK = {
  kind: "login",
  user: "ada",
  display_name: "",
  is_admin: false,
  projects: [],
  invited_by: null,
  problems: [],
};
const empty = { body: { items: [], next_cursor: null } };
const OVERVIEW = {
  body: {
    running: [],
    running_total: 0,
    failed: [],
    failed_total: 0,
    failed_since: "2026-10-02T08:00:00Z",
    waiting: 0,
    paused: 0,
    next_job: null,
    projects: [],
  },
};
const OF_HOME: Routes = {
  "GET /account/overview": OVERVIEW,
  "GET /workers": empty,
  "GET /pools": empty,
  "GET /experiments": empty,
};

beforeEach(() => {
  calls.length = 0;
});

describe("login", () => {
  const options = (password: boolean) => ({ body: { password } });

  it("shows the login page without a session, and why a password was refused", async () => {
    let known = false;
    serve({
      "GET /session": () => (known ? { body: SESSION } : problem(401, "Log in first.")),
      "GET /session:options": options(true),
      "POST /session": (init) => {
        known = String(init.body).includes("correct");
        return known
          ? { status: 201, body: SESSION }
          : problem(401, "User name or password is wrong.");
      },
      "GET /experiments": empty,
    });
    open("/experiments");
    const password = await screen.findByLabelText(/^Password/, {
      selector: "input[name=password]",
    });
    await userEvent.type(screen.getByLabelText(/^User name/), "ada");
    await userEvent.type(password, "guess");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText("User name or password is wrong.")).toBeVisible();
    expect(screen.getByText("req-42")).toBeVisible();
    await userEvent.clear(password);
    await userEvent.type(password, "correct");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText("No experiments yet")).toBeVisible();
  });

  it("Line 15.24: takes a login link, and names the command that makes one", async () => {
    let known = false;
    serve({
      "GET /session": () => (known ? { body: SESSION } : problem(401, "Log in first.")),
      "GET /session:options": options(false),
      "POST /session:redeem": (init) => {
        if (String(init.body).includes("check_only")) return { body: LOGIN_LINK };
        known = true;
        return { status: 201, body: SESSION };
      },
      "GET /experiments": empty,
    });
    open("/experiments");
    expect(await screen.findByText("palestra login-link")).toBeVisible();
    expect(screen.queryByLabelText(/^Password/, { selector: "input[name=password]" })).toBeNull();
    await userEvent.type(
      screen.getByLabelText(/^Login link/),
      "http://127.0.0.1:8080/login#code=pll_pasted",
    );
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    expect(redeemed()).toEqual([
      { code: "pll_pasted", user: null, display_name: null, password: null },
    ]);
  });

  it("redeems a one-time link once and removes the code from the URL", async () => {
    serve({
      "POST /session:redeem": (init) =>
        String(init.body).includes("check_only")
          ? { body: LOGIN_LINK }
          : { status: 201, body: SESSION },
      "GET /session": { body: SESSION },
      "GET /session:options": options(false),
      "GET /experiments": empty,
    });
    open("/login#code=pll_secret");
    expect(await screen.findByText("From here to your first curve")).toBeVisible();
    expect(redeemed()).toEqual([
      { code: "pll_secret", user: null, display_name: null, password: null },
    ]);
    expect(window.location.hash).toBe("");
  });

  it("Line 15.24: redeems a link that is opened in the tab that shows the login page", async () => {
    let known = false;
    serve({
      "GET /session": () => (known ? { body: SESSION } : problem(401, "Log in first.")),
      "GET /session:options": options(false),
      "POST /session:redeem": (init) => {
        if (String(init.body).includes("check_only")) return { body: LOGIN_LINK };
        known = true;
        return { status: 201, body: SESSION };
      },
      "GET /experiments": empty,
    });
    open("/login");
    await screen.findByText("palestra login-link");
    window.location.hash = "code=pll_later";
    expect(await screen.findByText("From here to your first curve")).toBeVisible();
    expect(redeemed()).toEqual([
      { code: "pll_later", user: null, display_name: null, password: null },
    ]);
  });
});

function redeemed(): unknown[] {
  return calls
    .filter((call) => call.url.endsWith("/session:redeem"))
    .map((call) => JSON.parse(String(call.init.body)))
    .filter((body) => !body.check_only);
}

describe("Line 15.24: failed queries are repeated automatically after an outage", () => {
  const page = { body: { items: [], next_cursor: null } };
  /** Lets more time pass than lies between two tries. */
  const passTime = () => vi.advanceTimersByTimeAsync(10_000);

  beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));

  it.each([
    ["the server cannot be reached", () => Promise.reject(new TypeError("Failed to fetch"))],
    ["the server says that it is not ready", () => problem(503, "The database cannot be reached.")],
  ])("%s", async (_, failure) => {
    let asked = 0;
    serve({
      "GET /session": { body: SESSION },
      "GET /experiments": () => {
        asked += 1;
        return asked < 3 ? (failure() as never) : page;
      },
    });
    open("/experiments");
    expect(await screen.findByText(/The request is repeated automatically/)).toBeVisible();
    await passTime();
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    expect(asked).toBe(3);
  });

  it("repeats the query of Home at once where the user asks for it", async () => {
    let [isThere, asked] = [false, 0];
    serve({
      "GET /session": { body: SESSION },
      "GET /account/overview": () => {
        asked += 1;
        return isThere ? OVERVIEW : Promise.reject(new TypeError("Failed to fetch"));
      },
    });
    open("/");
    expect(await screen.findByText(/cannot be reached/)).toBeVisible();
    await passTime();
    isThere = true;
    const before = asked;
    await userEvent.click(screen.getByRole("button", { name: "Try now" }));
    expect(asked).toBe(before + 1);
    expect(await screen.findByRole("table", { name: "Your projects" })).toBeVisible();
  });

  it("repeats the query of the session, without which no page is shown", async () => {
    let asked = 0;
    serve({
      "GET /session": () => {
        asked += 1;
        return asked < 2
          ? (Promise.reject(new TypeError("Failed to fetch")) as never)
          : { body: SESSION };
      },
      "GET /experiments": page,
    });
    open("/experiments");
    expect(await screen.findByText(/The request is repeated automatically/)).toBeVisible();
    await passTime();
    expect(await screen.findByText("No experiments yet")).toBeVisible();
  });

  it("does not repeat a query that was refused", async () => {
    let asked = 0;
    serve({
      "GET /session": { body: SESSION },
      "GET /experiments": () => {
        asked += 1;
        return problem(422, "No such order.");
      },
    });
    open("/experiments");
    expect(await screen.findByText("No such order.")).toBeVisible();
    await passTime();
    expect(asked).toBe(1);
  });
});

describe("experiments", () => {
  it("shows the command that submits one when there are none", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/experiments");
    expect(
      await screen.findByText(/palestra submit examples\/cartpole-dqn.yaml --seeds 0-2/),
    ).toBeVisible();
  });

  it("shows the request id of a failure", async () => {
    serve({
      "GET /session": { body: SESSION },
      "GET /experiments": problem(500, "The server failed."),
    });
    open("/experiments");
    expect(await screen.findByText("The server failed.")).toBeVisible();
    expect(screen.getByText("req-42")).toBeVisible();
  });

  it("passes the filters of the address on to the server", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/experiments?text=cart&state=running&bogus=1");
    expect(await screen.findByText("No experiment matches")).toBeVisible();
    await waitFor(() =>
      expect(calls.some((call) => call.url.includes("text=cart&state=running"))).toBe(true),
    );
    expect(calls.some((call) => call.url.includes("bogus"))).toBe(false);
  });

  it("filters by who submitted where a project has several members", async () => {
    serve({
      "GET /session": { body: SESSION },
      "GET /experiments": empty,
      "GET /projects/default/members": {
        body: { items: [{ user: "ada" }, { user: "maxim" }], next_cursor: null },
      },
    });
    open("/experiments");
    await userEvent.click(await screen.findByRole("combobox", { name: "Submitted by" }));
    expect(screen.queryByRole("option", { name: "ada", hidden: true })).toBeNull();
    await userEvent.click(await screen.findByRole("option", { name: "mine", hidden: true }));
    await waitFor(() =>
      expect(calls.some((call) => call.url.includes("/experiments?user=me&"))).toBe(true),
    );
  });

  it("offers no filter by person to somebody alone", async () => {
    serve({
      "GET /session": { body: SESSION },
      "GET /experiments": empty,
      "GET /projects/default/members": { body: { items: [{ user: "ada" }], next_cursor: null } },
    });
    open("/experiments");
    await waitFor(() => expect(calls.some((call) => call.url.includes("/members"))).toBe(true));
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    expect(screen.queryByLabelText("Submitted by")).toBeNull();
  });

  it("lists the shortcuts on ?", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/experiments");
    await screen.findByText("No experiments yet");
    await userEvent.keyboard("?");
    const shown = await screen.findByText("Go to queue");
    await waitFor(() => expect(shown).toBeVisible());
  });
});

describe("projects", () => {
  const TWO = { ...SESSION, project: "", projects: [member("alpha"), member("beta", "viewer")] };
  const serveTwo = () =>
    serve({
      "GET /session": { body: TWO },
      "GET /experiments": empty,
      "GET /jobs": empty,
      "GET /runs": empty,
      "GET /pools": empty,
      "GET /experiments/cartpole-1": { body: { id: "cartpole-1", project: "beta" } },
      "GET /runs/run_7": { body: { id: "run_7", project: "beta" } },
    });

  it("begins at Home with three steps, and shows no switcher of a single project", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/");
    expect(await screen.findByText("From here to your first curve")).toBeVisible();
    const steps = screen.getAllByRole("heading", { level: 3 }).map((step) => step.textContent);
    expect(steps).toEqual(["A worker is there", "Make an experiment", "Watch the curve"]);
    expect(screen.getByRole("link", { name: "New experiment" })).toHaveAttribute(
      "href",
      "/p/default/new",
    );
    expect(screen.queryByText("Your running runs")).toBeNull();
    expect(window.location.pathname).toBe("/");
    expect(screen.queryByRole("button", { name: "Project" })).toBeNull();
    expect(screen.getByRole("link", { name: /Home/ })).toBeVisible();
  });

  it("lists several projects at Home, and follows the events of all of them", async () => {
    serveTwo();
    open("/");
    expect(await screen.findByRole("link", { name: "beta" })).toBeVisible();
    expect(screen.getByText("viewer")).toBeVisible();
    await waitFor(() => expect(calls.some((call) => follows(call, null))).toBe(true));
  });

  it("asks only routes of the project that was chosen, and remembers it", async () => {
    serveTwo();
    open("/");
    await userEvent.click(await screen.findByRole("button", { name: "Project" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: /^beta/, hidden: true }));
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    expect(window.location.pathname).toBe("/p/beta/experiments");
    const lists = calls.filter((call) => call.url.startsWith("/api/v1/experiments?"));
    expect(lists.at(-1)?.url).toMatch(/[?&]project=beta(&|$)/);
    await waitFor(() => expect(calls.some((call) => follows(call, "beta"))).toBe(true));
    expect(window.localStorage.getItem("palestra.project")).toBe("beta");
  });

  it.each([
    ["/experiments?text=cart", "/p/beta/experiments?text=cart"],
    ["/queue", "/p/beta/queue"],
    ["/experiments/cartpole-1", "/p/beta/experiments/cartpole-1"],
    ["/runs/run_7?tab=log", "/p/beta/runs/run_7?tab=log"],
  ])("redirects %s, which names no project, to %s", async (from, to) => {
    window.localStorage.setItem("palestra.project", "beta");
    serveTwo();
    open(from);
    await waitFor(() => expect(window.location.pathname + window.location.search).toBe(to));
  });

  it("says of a project that the caller is no member of where to ask", async () => {
    serveTwo();
    open("/p/gamma/experiments");
    expect(await screen.findByText(/or you are no member of it/)).toBeVisible();
    expect(calls.some((call) => call.url.includes("project=gamma"))).toBe(false);
  });

  it.each(["/", "/experiments"])("explains an account without projects at %s", async (path) => {
    serve({
      "GET /session": { body: { ...SESSION, project: "", projects: [] } },
      "GET /experiments": empty,
    });
    open(path);
    expect(await screen.findByText("You are a member of no project yet")).toBeVisible();
  });
});
