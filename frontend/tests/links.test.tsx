import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const ROLE = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
const SESSION = {
  user: "grace",
  user_id: "usr_grace",
  display_name: "",
  is_admin: false,
  project: "lab",
  projects: [{ ...ROLE, permissions: ["project.read"] }],
  permissions: ["account"],
  scopes: ["read"],
  csrf_token: "x",
  via: "cookie",
  setup_needed: false,
};
const INVITATION = {
  kind: "invitation",
  user: "grace",
  display_name: "Grace H.",
  is_admin: false,
  projects: [ROLE],
  invited_by: "ada",
  problems: [],
};
const TAKEN = { pointer: "/user", code: "name_taken", message: "Another user has this name." };
const WEAK = { pointer: "/password", code: "weak_password", message: "Too easy to guess." };

interface Body {
  user: string | null;
  password: string | null;
  check_only?: boolean;
}

const redeemed: Body[] = [];
let known = false;
let hasPasswords = true;

/** Answers as a server whose link has this preview, or is refused with a code and a sentence. */
function open(path: string, preview: object | { code: string; detail: string }): void {
  const judge = ({ user, password }: Body) => ({
    ...preview,
    problems: [
      ...(user === "admin" ? [TAKEN] : []),
      ...(password?.startsWith("password") ? [WEAK] : []),
    ],
  });
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    if (url.includes("/events")) return new Promise(() => undefined);
    const answer = (status: number, body: unknown) =>
      Promise.resolve(new Response(JSON.stringify(body), { status }));
    if (url.endsWith("/session:options")) return answer(200, { password: hasPasswords });
    if (url.endsWith("/session")) return known ? answer(200, SESSION) : answer(401, {});
    if (url.endsWith("/account/overview"))
      return answer(200, { running: [], failed: [], projects: [], next_job: null });
    if (!url.endsWith("/session:redeem")) return answer(200, { items: [], next_cursor: null });
    const body = JSON.parse(String(init.body)) as Body;
    if ("code" in preview) return answer(401, preview);
    if (body.check_only) return answer(200, judge(body));
    redeemed.push(body);
    const problems = judge(body).problems;
    if (problems.length > 0)
      return answer(422, { code: problems[0]?.code, detail: "Refused.", errors: problems });
    known = true;
    return answer(201, SESSION);
  });
  window.history.replaceState(null, "", path);
  render(<App />);
}

beforeEach(() => {
  redeemed.length = 0;
  known = false;
  hasPasswords = true;
});

describe("an invitation", () => {
  it("says what it gives, judges what is typed, and leads to the project", async () => {
    open("/login#code=pll_invited", INVITATION);
    expect(await screen.findByText(/invites you/)).toHaveTextContent("ada invites you");
    expect(screen.getByLabelText("Your projects")).toHaveTextContent("Lab as member");
    const name = screen.getByLabelText(/^Login name/);
    expect(name).toHaveValue("grace");
    expect(screen.getByLabelText(/^Display name/)).toHaveValue("Grace H.");
    const password = screen.getByLabelText(/^Password/, { selector: "input" });
    await userEvent.type(password, "password12");
    expect(screen.getByText("2 more characters")).toBeVisible();
    await userEvent.type(password, "34");
    expect(await screen.findByText(WEAK.message)).toBeVisible();
    await userEvent.clear(name);
    await userEvent.type(name, "admin");
    expect(await screen.findByText(TAKEN.message)).toBeVisible();
    expect(redeemed).toEqual([]);
    await userEvent.clear(name);
    await userEvent.type(name, "hopper");
    await userEvent.clear(password);
    await userEvent.type(password, "four unrelated owls");
    await waitFor(() => expect(screen.queryByText(TAKEN.message)).toBeNull());
    await userEvent.click(screen.getByRole("button", { name: "Join" }));
    expect(await screen.findByText("From here to your first curve")).toBeVisible();
    expect(window.location.hash).toBe("");
    expect(redeemed).toEqual([
      {
        code: "pll_invited",
        user: "hopper",
        display_name: "Grace H.",
        password: "four unrelated owls",
      },
    ]);
  });

  it.each([
    ["invitation_used", "The invitation was used", "This invitation was used."],
    ["invitation_expired", "The invitation has expired", "This invitation has expired."],
    ["invitation_revoked", "The invitation was revoked", "This invitation was revoked."],
    ["link_used", "The link was refused", "This link was used or has expired."],
  ])("that cannot be used (%s) says why", async (code, title, detail) => {
    open("/login#code=pll_over", { code, detail });
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent(title);
    expect(alert).toHaveTextContent(detail);
    expect(redeemed).toEqual([]);
  });

  it("may be pasted where a login link is asked for", async () => {
    hasPasswords = false;
    open("/login", INVITATION);
    await userEvent.type(
      await screen.findByPlaceholderText("http://…/login#code=…"),
      "http://lab/login#code=pll_pasted",
    );
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(await screen.findByText(/invites you/)).toBeVisible();
  });
});

describe("the link of a new password", () => {
  it("asks for the password before it logs in", async () => {
    open("/login?reset=true#code=pll_reset", { ...INVITATION, kind: "login", projects: [] });
    expect(await screen.findByText(/Choose a new password for/)).toHaveTextContent("Grace H.");
    const password = screen.getByLabelText(/^Password/, { selector: "input" });
    await userEvent.type(password, "four unrelated owls");
    await userEvent.click(screen.getByRole("button", { name: "Set the password" }));
    expect(await screen.findByText("From here to your first curve")).toBeVisible();
    expect(redeemed).toEqual([
      {
        code: "pll_reset",
        user: null,
        display_name: null,
        password: "four unrelated owls",
      },
    ]);
  });
});
