import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const SESSION = {
  user: "ada",
  user_id: "usr_ada",
  display_name: "",
  is_admin: true,
  project: "",
  projects: [],
  scopes: ["admin"],
  csrf_token: "x",
  via: "cookie",
  setup_needed: false,
};
const person = (name: string, more: object = {}) => ({
  id: `usr_${name}`,
  name,
  display_name: "",
  email: null,
  is_admin: false,
  state: "active",
  has_password: true,
  projects: [{ project_id: "prj_1", slug: "lab", name: "Lab", role: "member" }],
  created_at: "2026-10-02T08:00:00Z",
  disabled_at: null,
  last_used_at: null,
  owned: { experiments: 1, runs: 3, jobs: 3, live_jobs: 2, workers: 0 },
  ...more,
});
const INVITED = {
  id: "inv_1",
  name: "hedy",
  display_name: "",
  email: null,
  is_admin: false,
  projects: [],
  state: "open",
  created_by: "ada",
  created_at: "2026-10-02T08:00:00Z",
  expires_at: "2026-10-09T08:00:00Z",
  redeemed_at: null,
  redeemed_by: null,
  revoked_at: null,
  url: null,
};
const LAST = {
  code: "last_administrator",
  detail: "This user is the last administrator of the server. Make another user one first.",
};

const sent: string[] = [];
let refusal: { code: string; detail: string; errors?: object[] } | null = null;
let invitations: object[] = [INVITED];

function answerTo(method: string, url: string): unknown {
  const path = url.replace("/api/v1", "");
  if (path === "/session") return { ...SESSION, permissions };
  if (path.startsWith("/users?")) return { items: [person("ada"), person("eva")] };
  if (path.startsWith("/invitations")) return { items: invitations, next_cursor: null };
  if (path.startsWith("/projects"))
    return { items: [{ id: "prj_1", slug: "lab", name: "Lab", archived_at: null }] };
  if (path === "/users:invite")
    return { items: [1, 2].map((n) => ({ ...INVITED, id: `inv_${n}`, url: `http://lab/#${n}` })) };
  if (path.endsWith(":reset-password")) return { url: "http://lab/#new", expires_in_seconds: 3600 };
  if (path.endsWith(":disable"))
    return { user: person("eva", { state: "disabled" }), live_jobs: 2, changed_jobs: 2 };
  if (method === "DELETE") return { transferred: { runs: 3 }, transferred_to: "ada" };
  return person("eva", path.includes("gone") ? { name: "gone", state: "disabled" } : {});
}

let permissions: string[] = [];

function open(path: string, granted = ["server.users"]): void {
  permissions = granted;
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (url.includes("/events")) return new Promise(() => undefined);
    const method = init.method ?? "GET";
    const changes = method !== "GET";
    if (changes || url.includes("/users?"))
      sent.push(`${method} ${url.replace("/api/v1", "")} ${init.body ?? ""}`.trim());
    if (changes && refusal !== null)
      return Promise.resolve(new Response(JSON.stringify(refusal), { status: 409 }));
    return Promise.resolve(new Response(JSON.stringify(answerTo(method, url)), { status: 200 }));
  });
  window.history.replaceState(null, "", path);
  render(<App />);
}

const changes = () => sent.filter((one) => !one.startsWith("GET"));

beforeEach(() => {
  sent.length = 0;
  refusal = null;
  invitations = [INVITED];
});

describe("people", () => {
  it("are searched and filtered by the server, and a click opens one", async () => {
    open("/admin/people");
    await userEvent.type(await screen.findByRole("searchbox"), "ev");
    await waitFor(() => expect(window.location.search).toBe("?text=ev"));
    await userEvent.click(screen.getByRole("button", { name: /Login name/ }));
    await waitFor(() => expect(sent.at(-1)).toContain("text=ev&sort=-name"));
    await userEvent.click(await screen.findByText("eva"));
    expect(await screen.findByRole("heading", { name: "eva" })).toBeVisible();
    expect(window.location.pathname).toBe("/admin/people/eva");
  });

  it("are not shown to those who may not manage them", async () => {
    open("/admin/people", ["account"]);
    expect(await screen.findByText("You may not manage people")).toBeVisible();
    expect(screen.getByText("Only administrators of the server may do this.")).toBeVisible();
    expect(sent).toEqual([]);
    expect(screen.queryByRole("navigation", { name: "Administration" })).toBeNull();
    const invite = screen.getByRole("link", { name: "Invite people" });
    expect(invite).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(invite);
    expect(window.location.pathname).toBe("/admin/people");
  });
});

describe("a person", () => {
  it("gets a link for a new password, which is shown", async () => {
    open("/admin/people/eva");
    await userEvent.click(await screen.findByRole("button", { name: "Reset password" }));
    expect(await screen.findByText("http://lab/#new")).toBeVisible();
    expect(screen.getByText(/expires in 1 h 00 min/)).toBeVisible();
  });

  it("stays administrator where the server refuses, with its sentence at the action", async () => {
    refusal = LAST;
    open("/admin/people/eva");
    await userEvent.click(await screen.findByRole("button", { name: "Make administrator" }));
    const section = screen.getByRole("heading", { name: "Administrator of the server" });
    const action = section.closest("section") as HTMLElement;
    expect(await within(action).findByRole("alert")).toHaveTextContent(LAST.detail);
    expect(changes()).toEqual(['PATCH /users/eva {"is_admin":true}']);
  });

  it("is disabled, and the jobs are transferred to the person chosen", async () => {
    open("/admin/people/eva");
    await userEvent.click(await screen.findByRole("button", { name: "Disable…" }));
    const dialog = await screen.findByRole("dialog", { name: "Disable eva?" });
    expect(within(dialog).getByText("What becomes of 2 unfinished jobs?")).toBeInTheDocument();
    const disable = within(dialog).getByRole("button", { name: "Disable", hidden: true });
    await userEvent.click(within(dialog).getByLabelText("Transfer"));
    expect(disable).toBeDisabled();
    await userEvent.click(within(dialog).getByRole("combobox", { hidden: true }));
    const options = await screen.findAllByRole("option", { hidden: true });
    expect(options.map((one) => one.textContent?.trim())).toEqual(["ada"]);
    await userEvent.click(options[0] as HTMLElement);
    await userEvent.click(disable);
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(changes()).toEqual(['POST /users/eva:disable {"jobs":"transfer","transfer_to":"ada"}']);
    expect(await screen.findByText("eva is disabled; 2 jobs transferred.")).toBeVisible();
  });

  it("is deleted once the login name is typed and a person gets what it owns", async () => {
    open("/admin/people/eva");
    await userEvent.click(await screen.findByRole("button", { name: "Delete…" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete eva?" });
    expect(dialog).toHaveTextContent("1 experiment, 3 runs, 3 jobs (2 unfinished)");
    const remove = within(dialog).getByRole("button", { name: "Delete", hidden: true });
    await userEvent.type(within(dialog).getByLabelText(/to confirm/), "eva");
    expect(remove).toBeDisabled();
    await userEvent.click(within(dialog).getByRole("combobox", { hidden: true }));
    await userEvent.click(await screen.findByRole("option", { hidden: true }));
    await userEvent.click(remove);
    expect(await screen.findByText("eva is deleted; ada got 3 runs.")).toBeVisible();
    expect(changes()).toEqual(["DELETE /users/eva?transfer_to=ada"]);
    expect(window.location.pathname).toBe("/admin/people");
  });

  it("who is disabled can be enabled, and gets no link", async () => {
    open("/admin/people/gone");
    const reset = await screen.findByRole("button", { name: "Reset password" });
    expect(reset).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(reset);
    await userEvent.click(screen.getByRole("button", { name: "Enable" }));
    await waitFor(() => expect(changes()).toEqual(["POST /users/gone:enable"]));
  });
});

describe("invitations", () => {
  it("are made for several people at once, and the links are shown", async () => {
    open("/admin/people");
    await userEvent.click(await screen.findByRole("link", { name: "Invite people" }));
    await userEvent.type(await screen.findByLabelText("Login name"), "Hedy L");
    await userEvent.click(screen.getByRole("button", { name: "Another person" }));
    await userEvent.click(screen.getByRole("combobox", { name: "Project 1" }));
    await userEvent.click(await screen.findByRole("option", { name: "Lab (lab)", hidden: true }));
    await userEvent.click(screen.getByRole("button", { name: "Make 2 links" }));
    expect(await screen.findByText("http://lab/#1")).toBeVisible();
    expect(screen.getByText("http://lab/#2")).toBeVisible();
    expect(screen.getByRole("button", { name: "Copy all" })).toBeVisible();
    const nobody = { name: null, display_name: null, email: null, is_admin: false };
    const projects = [{ project: "lab", role: "member" }];
    expect(changes()).toEqual([
      `POST /users:invite ${JSON.stringify({
        invitations: [
          { ...nobody, name: "hedy-l", projects },
          { ...nobody, projects },
        ],
        expires_in_hours: 168,
      })}`,
    ]);
  });

  it("that are refused keep what was typed, with the sentence at the field", async () => {
    const detail = "Another user has this name. Choose another.";
    const errors = [{ pointer: "/invitations/0/name", code: "name_taken", message: detail }];
    refusal = { code: "name_taken", detail: "Refused.", errors };
    open("/admin/invitations?invite=true");
    await userEvent.type(await screen.findByLabelText("Login name"), "ada");
    await userEvent.click(screen.getByRole("button", { name: "Make the link" }));
    expect(await screen.findByText(detail)).toBeVisible();
    expect(screen.getByLabelText("Login name")).toHaveValue("ada");
  });

  it("are revoked after a question", async () => {
    open("/admin/invitations");
    const revoke = { name: "Revoke the invitation of hedy" };
    await userEvent.click(await screen.findByRole("button", revoke));
    const dialog = await screen.findByRole("dialog", { name: "Revoke the invitation of hedy?" });
    expect(changes()).toEqual([]);
    await userEvent.click(within(dialog).getByRole("button", { name: "Revoke", hidden: true }));
    await waitFor(() => expect(changes()).toEqual(["DELETE /invitations/inv_1"]));
  });

  it("belong to the people in the strip of the administration", async () => {
    open("/admin/invitations");
    const strip = await screen.findByRole("navigation", { name: "Administration" });
    expect(within(strip).getByRole("link", { name: "People" })).toHaveAttribute("data-active");
  });

  it("are explained where there is none", async () => {
    invitations = [];
    open("/admin/invitations");
    expect(await screen.findByText("Nobody has been invited yet")).toBeVisible();
  });
});
