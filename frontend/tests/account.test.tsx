import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const sent: string[] = [];
const DAY_MS = 86_400_000;
const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
let account: Record<string, unknown>;
let tokens: Record<string, unknown>[];
/** Answers to changes, by the end of their path. */
let answers: Record<string, [number, unknown]>;

const token = (name: string, more: Record<string, unknown> = {}) => ({
  id: `tok_${name}`,
  user: "eva",
  project: null,
  name,
  scopes: ["read"],
  created_at: at(-3),
  expires_at: at(60),
  previous_until: null,
  last_used_at: at(-1),
  last_used_address: "192.0.2.7",
  revoked_at: null,
  secret: null,
  ...more,
});

const login = (id: string, isPresent: boolean) => ({
  id,
  browser: isPresent ? "Firefox on Linux" : "Safari on iPhone",
  address: "192.0.2.7",
  opened_by: "password",
  is_present: isPresent,
  created_at: at(-2),
  last_used_at: at(-1),
});

function bodyOf(url: string): unknown {
  const path = url.replace(/\?.*/, "");
  if (path.endsWith("/account")) return account;
  const page = (items: unknown[]) => ({ items, next_cursor: null });
  if (path.endsWith("/account/sessions"))
    return page([login("ses_phone", false), login("ses_here", true)]);
  if (path.endsWith("/tokens")) return page(tokens);
  const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
  if (path.endsWith("/session"))
    return {
      user: "eva",
      projects: [{ ...lab, permissions: [] }],
      permissions: ["account"],
      csrf_token: "x",
      scopes: [],
    };
  return page([]);
}

function open(): void {
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const isChange = init.method !== undefined;
    if (isChange)
      sent.push(`${init.method} ${url.replace("/api/v1", "")} ${init.body ?? ""}`.trim());
    const answer = isChange && Object.entries(answers).find(([end]) => url.endsWith(end));
    const [status, body] = answer ? answer[1] : [200, bodyOf(url)];
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
  window.history.replaceState(null, "", "/account");
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
  answers = {};
  account = {
    id: "usr_1",
    name: "eva",
    display_name: "",
    email: null,
    is_admin: false,
    has_password: true,
    current_password_needed: true,
    projects: [{ project_id: "prj_1", slug: "lab", name: "Lab", role: "member" }],
    created_at: at(-40),
  };
  tokens = [
    token("laptop"),
    token("old", { expires_at: at(-1) }),
    token("gone", { revoked_at: at(-2) }),
    token("theirs", { user: "robot" }),
  ];
});

describe("the profile", () => {
  it("is saved, and shows what the server says of a field", async () => {
    open();
    const save = await screen.findByRole("button", { name: "Save" });
    expect(save).toBeDisabled();
    await userEvent.type(screen.getByLabelText("Display name"), "Eva B.");
    await userEvent.type(screen.getByLabelText("E-mail address"), "nobody");
    const fault = { pointer: "/email", code: "x", message: "must be an address" };
    answers = { "/account": [422, { detail: "bad", errors: [fault] }] };
    await userEvent.click(save);
    expect(await screen.findByText("must be an address")).toBeInTheDocument();
    expect(sent).toEqual(['PATCH /account {"display_name":"Eva B.","email":"nobody"}']);
  });
});

describe("the password", () => {
  it("is changed with the current one", async () => {
    open();
    await userEvent.type(await screen.findByLabelText(/Current password/), "four owls sing");
    await userEvent.type(screen.getByLabelText(/New password/), "seven lamps drift");
    answers = { "/password": [200, { ended_sessions: 2 }] };
    await userEvent.click(screen.getByRole("button", { name: "Change password" }));
    expect(
      await screen.findByText("Your password is set. 2 other logins ended."),
    ).toBeInTheDocument();
    expect(sent).toEqual([
      'PUT /account/password {"password":"seven lamps drift","current_password":"four owls sing"}',
    ]);
    expect(screen.getByLabelText(/New password/)).toHaveValue("");
  });

  it("is set without one where there is none", async () => {
    account = { ...account, has_password: false, current_password_needed: false };
    open();
    expect(await screen.findByRole("button", { name: "Set password" })).toBeDisabled();
    expect(screen.queryByLabelText(/Current password/)).toBeNull();
    expect(screen.getByText(/You log in by one-time links/)).toBeInTheDocument();
  });

  it("shows beside its field why it was refused", async () => {
    open();
    await userEvent.type(await screen.findByLabelText(/Current password/), "not this one");
    await userEvent.type(screen.getByLabelText(/New password/), "seven lamps drift");
    const fault = { pointer: "/current_password", code: "x", message: "It is wrong." };
    answers = { "/password": [403, { detail: "It is wrong.", errors: [fault] }] };
    await userEvent.click(screen.getByRole("button", { name: "Change password" }));
    expect(await screen.findByText("It is wrong.")).toBeInTheDocument();
    expect(screen.getByLabelText(/New password/)).toHaveValue("seven lamps drift");
  });
});

describe("browser logins", () => {
  it("are listed with this one first, and others can be ended", async () => {
    open();
    const table = await screen.findByRole("table", { name: "Browser logins" });
    const rows = within(table).getAllByRole("row").slice(1);
    expect(rows[0]).toHaveTextContent(/^Firefox on Linux.*this one$/);
    expect(rows[1]).not.toHaveTextContent("this one");
    expect(within(rows[0] as HTMLElement).queryByRole("button")).toBeNull();
    await userEvent.click(
      screen.getByRole("button", { name: "End the login of Safari on iPhone" }),
    );
    await waitFor(() => expect(sent).toEqual(["DELETE /account/sessions/ses_phone"]));
  });

  it("end everywhere after a question", async () => {
    open();
    await userEvent.click(await screen.findByRole("button", { name: "Sign out everywhere" }));
    const dialog = await screen.findByRole("dialog", { name: "Sign out everywhere?" });
    answers = { ":sign-out": [200, { ended_sessions: 2 }] };
    await userEvent.click(within(dialog).getByRole("button", { name: "Sign out", hidden: true }));
    await waitFor(() => expect(window.location.pathname).toBe("/login"));
    expect(sent).toEqual(["POST /account:sign-out"]);
  });
});

describe("the caller's tokens", () => {
  it("leave out those of others, and show ended ones apart", async () => {
    open();
    const table = await screen.findByRole("table", { name: "API tokens" });
    expect(within(table).getByText("laptop")).toBeInTheDocument();
    expect(within(table).getByText("192.0.2.7")).toBeInTheDocument();
    for (const name of ["old", "gone", "theirs"])
      expect(screen.queryByText(name, { selector: "b" })).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: /2 expired or revoked tokens/ }));
    const ended = screen.getByRole("table", { name: "Expired and revoked tokens" });
    expect(within(ended).getByRole("row", { name: /^old/ })).toHaveTextContent(/expired 20\d\d-/);
    expect(within(ended).getByRole("row", { name: /^gone/ })).toHaveTextContent(/revoked 20\d\d-/);
    expect(screen.queryByText("theirs")).toBeNull();
  });

  it("are made with scopes and an end, and show their secret once", async () => {
    tokens = [];
    open();
    expect(await screen.findByText("You have no valid token")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "New token" }));
    const dialog = await screen.findByRole("dialog", { name: "New token" });
    await userEvent.type(within(dialog).getByLabelText(/^Name/), "notebook");
    await userEvent.click(within(dialog).getByLabelText(/^submit:/));
    expect(within(dialog).queryByLabelText(/^worker/)).toBeNull();
    answers = { "/tokens": [201, token("notebook", { secret: "plr_once" })] };
    await userEvent.click(within(dialog).getByRole("button", { name: "Create", hidden: true }));
    const shown = await screen.findByRole("dialog", { name: "Secret of notebook" });
    expect(within(shown).getByText("plr_once")).toBeInTheDocument();
    expect(within(shown).getByText(`palestra login ${window.location.origin}`)).toBeInTheDocument();
    expect(sent).toEqual([
      'POST /tokens {"name":"notebook","scopes":["read"],"project":null,"expires_in_days":90}',
    ]);
  });

  it("are rotated with an overlap, and revoked after a question", async () => {
    open();
    await userEvent.click(await screen.findByRole("button", { name: "Rotate laptop" }));
    answers = { ":rotate": [200, token("laptop", { secret: "plr_new" })] };
    const rotation = await screen.findByRole("dialog", { name: "Rotate laptop" });
    await userEvent.click(within(rotation).getByRole("button", { name: "Rotate", hidden: true }));
    const shown = await screen.findByRole("dialog", { name: "Secret of laptop" });
    await userEvent.click(within(shown).getByRole("button", { name: /copied/, hidden: true }));
    await userEvent.click(screen.getByRole("button", { name: "Revoke laptop" }));
    const question = await screen.findByRole("dialog", { name: "Revoke laptop?" });
    await userEvent.click(within(question).getByRole("button", { name: "Revoke", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual([
        'POST /tokens/tok_laptop:rotate {"overlap_hours":24,"expires_in_days":null}',
        "DELETE /tokens/tok_laptop",
      ]),
    );
  });
});
