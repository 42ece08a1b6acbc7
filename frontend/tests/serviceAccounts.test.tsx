import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const sent: string[] = [];
const later = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

const account = {
  user_id: "usr_ci",
  name: "lab-ci",
  role: "member",
  created_at: "2026-10-02T08:00:00Z",
  tokens: 1,
  last_used_at: null,
};
const token = (id: string, name: string, changes: object = {}) => ({
  id,
  parent_id: null,
  user: "lab-ci",
  project: "lab",
  name,
  scopes: ["read", "submit"],
  created_at: "2026-10-02T08:00:00Z",
  expires_at: later(60),
  previous_until: null,
  last_used_at: null,
  revoked_at: null,
  secret: null,
  ...changes,
});

function open(permissions: string[], accounts: object[], tokens: object[]): void {
  const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "maintainer" };
  const session = {
    user: "eva",
    projects: [{ ...lab, archived: false, permissions }],
    permissions: [],
    csrf_token: "x",
    scopes: [],
  };
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const changes = ["POST", "DELETE"].includes(init.method ?? "");
    if (changes) sent.push(`${init.method} ${url} ${init.body ?? ""}`.trim());
    const items = url.includes("/tokens?") ? tokens : accounts;
    const body = url.endsWith("/session")
      ? session
      : changes
        ? token("tok_new", "nightly", { secret: "pl_secret_of_the_token" })
        : { items, next_cursor: null };
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
  window.history.replaceState(null, "", "/p/lab/service-accounts");
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
});

describe("service accounts", () => {
  it("are explained where there are none, with the commands of a pipeline", async () => {
    open(["project.credentials"], [], []);
    expect(await screen.findByText("No service account yet")).toBeInTheDocument();
    expect(screen.getByText(/palestra submit experiment.yaml --watch/)).toHaveTextContent(
      "export PALESTRA_PROJECT=lab",
    );
    await userEvent.click(screen.getByRole("button", { name: "New service account" }));
    await userEvent.type(await screen.findByLabelText(/^Name/), "lab-ci");
    await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual([
        'POST /api/v1/projects/lab/service-accounts {"name":"lab-ci","role":"member"}',
      ]),
    );
  });

  it("get tokens, whose secret is shown once with the commands that use it", async () => {
    open(["project.credentials"], [account], []);
    expect(await screen.findByText(/No token is valid/)).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "New token" }));
    await userEvent.type(await screen.findByLabelText(/^Name/), "nightly");
    await userEvent.click(screen.getByLabelText(/^submit/));
    await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
    const dialog = await screen.findByRole("dialog", { name: "Secret of nightly" });
    expect(within(dialog).getByText("pl_secret_of_the_token")).toBeInTheDocument();
    expect(sent).toEqual([
      "POST /api/v1/projects/lab/service-accounts/lab-ci/tokens " +
        '{"name":"nightly","scopes":["read"],"expires_in_days":90}',
    ]);
    // A secret that was not copied yet must not be lost by a stray key.
    await userEvent.keyboard("{Escape}");
    expect(screen.getByText("pl_secret_of_the_token")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "I have copied it", hidden: true }));
    await waitFor(() => expect(screen.queryByText("pl_secret_of_the_token")).toBeNull());
  });

  it("have tokens that are rotated with an overlap, and revoked after a question", async () => {
    const tokens = [
      token("tok_1", "nightly", { expires_at: later(3) }),
      token("tok_2", "before", { revoked_at: "2026-10-03T08:00:00Z" }),
      token("tok_3", "of another user", { user: "eva" }),
    ];
    open(["project.credentials"], [account], tokens);
    await userEvent.click(await screen.findByRole("button", { name: "Rotate nightly" }));
    expect(screen.getByText("in 3 d")).toBeInTheDocument();
    expect(screen.queryByText("before")).toBeNull();
    expect(screen.queryByText("of another user")).toBeNull();
    await userEvent.click(await screen.findByRole("button", { name: "Rotate", hidden: true }));
    expect(await screen.findByText("pl_secret_of_the_token")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "I have copied it", hidden: true }));
    await userEvent.click(
      await screen.findByRole("button", { name: "Revoke nightly", hidden: true }),
    );
    const dialog = await screen.findByRole("dialog", { name: "Revoke nightly?" });
    await userEvent.click(within(dialog).getByRole("button", { name: "Revoke", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual([
        'POST /api/v1/tokens/tok_1:rotate {"overlap_hours":24,"expires_in_days":null}',
        "DELETE /api/v1/tokens/tok_1",
      ]),
    );
    await userEvent.click(screen.getByRole("button", { name: "Show 1 ended token", hidden: true }));
    expect(screen.getByText("before")).toBeInTheDocument();
  });

  it("are deleted after a question", async () => {
    open(["project.credentials"], [account], [token("tok_1", "nightly")]);
    await userEvent.click(await screen.findByRole("button", { name: "More actions on lab-ci" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Delete…" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete lab-ci?" });
    expect(dialog).toHaveTextContent("1 valid token of lab-ci will end at once.");
    await userEvent.click(within(dialog).getByRole("button", { name: "Delete", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual(["DELETE /api/v1/projects/lab/service-accounts/lab-ci"]),
    );
  });

  it("are not shown to those who do not maintain the project", async () => {
    open(["project.read"], [account], []);
    expect(await screen.findByText("You may not see the service accounts")).toBeInTheDocument();
    expect(screen.getByRole("button", { name: "New service account" })).toHaveAttribute(
      "aria-disabled",
      "true",
    );
    expect(screen.queryByText("lab-ci")).toBeNull();
  });
});
