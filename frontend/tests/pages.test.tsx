import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

type Answer = { status?: number; body: unknown };
type Routes = Record<string, Answer | ((init: RequestInit) => Answer)>;

const SESSION = {
  user: "ada",
  project: "default",
  scopes: ["read"],
  csrf_token: "csrf-1",
  via: "cookie",
  setup_needed: false,
};
const problem = (status: number, detail: string) => ({
  status,
  body: { type: "about:blank", title: "x", status, code: "some_code", detail, request_id: "req-42", errors: [] },
});
const calls: { url: string; init: RequestInit }[] = [];

function serve(routes: Routes): void {
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    calls.push({ url, init });
    if (url.includes("/events")) return new Promise(() => undefined);
    const key = `${init.method ?? "GET"} ${url.replace("/api/v1", "").split("?")[0]}`;
    const found = routes[key] ?? problem(404, "There is no such route.");
    const { status = 200, body } = typeof found === "function" ? found(init) : found;
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

const empty = { body: { items: [], next_cursor: null } };

beforeEach(() => {
  calls.length = 0;
  vi.stubGlobal("scrollTo", () => undefined);
});
afterEach(() => void vi.restoreAllMocks());

describe("login", () => {
  it("sends a stranger to the login page, says why a password failed, and then lets them in", async () => {
    let known = false;
    serve({
      "GET /session": () => (known ? { body: SESSION } : problem(401, "Log in first.")),
      "POST /session": (init) => {
        known = String(init.body).includes("correct");
        return known ? { status: 201, body: SESSION } : problem(401, "User name or password is wrong.");
      },
      "GET /experiments": empty,
    });
    open("/experiments");
    const password = await screen.findByLabelText(/^Password/, { selector: "input[name=password]" });
    await userEvent.type(password, "guess");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText("User name or password is wrong.")).toBeVisible();
    expect(screen.getByText("req-42")).toBeVisible();
    await userEvent.clear(password);
    await userEvent.type(password, "correct");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText("No experiments yet")).toBeVisible();
  });

  it("redeems a one-time link once and takes the code out of the address", async () => {
    serve({
      "POST /session:redeem": { status: 201, body: SESSION },
      "GET /session": { body: SESSION },
      "GET /experiments": empty,
    });
    open("/login#code=pll_secret");
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    const redeemed = calls.filter((call) => call.url.endsWith("/session:redeem"));
    expect(redeemed.map((call) => JSON.parse(String(call.init.body)))).toEqual([
      { code: "pll_secret", user: null, password: null },
    ]);
    expect(window.location.hash).toBe("");
  });
});

describe("experiments", () => {
  it("teaches with the exact command when there are none", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/experiments");
    expect(await screen.findByText(/palestra submit examples\/cartpole-dqn.yaml --seeds 0-2/)).toBeVisible();
  });

  it("shows the request id of a failure", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": problem(500, "The server failed.") });
    open("/experiments");
    expect(await screen.findByText("The server failed.")).toBeVisible();
    expect(screen.getByText("req-42")).toBeVisible();
  });

  it("passes the filters of the address on to the server", async () => {
    serve({ "GET /session": { body: SESSION }, "GET /experiments": empty });
    open("/experiments?text=cart&state=running&bogus=1");
    expect(await screen.findByText("No experiment matches")).toBeVisible();
    await waitFor(() => expect(calls.some((call) => call.url.includes("text=cart&state=running"))).toBe(true));
    expect(calls.some((call) => call.url.includes("bogus"))).toBe(false);
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
