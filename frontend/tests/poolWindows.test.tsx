import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { App } from "@/app/App";

const sent: { url: string; method: string; body: unknown }[] = [];
const POOL = {
  id: "pol_1",
  name: "lab",
  description: "",
  workers: 0,
  registered_workers: 0,
  slots: 0,
  free_slots: 0,
  queued: 0,
  running: 0,
  all_queued: 0,
  all_running: 0,
  paused_at: null,
  pause_reason: "",
  default_wall_seconds: null,
  max_wall_seconds: null,
  shows_names: false,
  created_at: "2026-11-01T00:00:00Z",
  projects: [],
};
const WINDOW = {
  id: "win_1",
  pool: "lab",
  kind: "reservation",
  start: "2026-12-01T08:00:00Z",
  end: "2026-12-01T12:00:00Z",
  has_begun: false,
  workers: ["gpu3"],
  project: "games",
  user: null,
  reason: "the deadline",
  created_by: "eva",
  created_at: "2026-11-24T00:00:00Z",
};

it("lists, plans and cancels the windows of a pool", async () => {
  const session = {
    user: "eva",
    is_admin: true,
    projects: [],
    permissions: ["server.pools"],
    csrf_token: "x",
    scopes: [],
  };
  vi.stubGlobal("fetch", (url: string, init?: RequestInit) => {
    if (url.includes("/events:")) return new Promise(() => undefined);
    const method = init?.method ?? "GET";
    if (method !== "GET")
      sent.push({ url, method, body: init?.body ? JSON.parse(String(init.body)) : null });
    if (method === "DELETE") return Promise.resolve(new Response(null, { status: 204 }));
    const body = url.endsWith("/session")
      ? session
      : url.endsWith("/pools/lab")
        ? POOL
        : url.endsWith("/windows")
          ? method === "POST"
            ? WINDOW
            : { items: [WINDOW], next_cursor: null }
          : { items: [], next_cursor: null };
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
  window.history.replaceState(null, "", "/admin/pools/lab");
  render(<App />);
  const table = await screen.findByRole("table", { name: "Maintenance and reservations" });
  expect(table).toHaveTextContent("Reserved for games");
  await userEvent.click(screen.getByRole("button", { name: "Plan…" }));
  const form = within(await screen.findByRole("dialog"));
  await userEvent.type(form.getByLabelText(/^From/), "2026-12-02T08:00");
  await userEvent.type(form.getByLabelText(/^To/), "2026-12-02T10:00");
  await userEvent.type(form.getByLabelText(/^Reason/), "new drivers");
  await userEvent.click(form.getByRole("button", { name: "Plan" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({
    method: "POST",
    body: { kind: "maintenance", workers: [], project: null, user: null, reason: "new drivers" },
  });
  await userEvent.click(within(table).getByRole("button", { name: "Cancel…" }));
  await userEvent.click(await screen.findByRole("button", { name: "Cancel the window" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]?.url).toContain("/pools/lab/windows/win_1");
});
