import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";

const sent: string[] = [];
let refusal: string | null = null;
const member = (user: string, role: string) => ({
  user_id: `usr_${user}`,
  user,
  display_name: "",
  role,
  since: "2026-10-02T08:00:00Z",
  disabled: false,
  service_account: false,
});

function open(permissions: string[]): void {
  const lab = { project_id: "prj_1", slug: "lab", name: "Lab", role: "member", archived: false };
  const session = {
    user: "eva",
    projects: [{ ...lab, permissions }],
    permissions: [],
    csrf_token: "x",
    scopes: [],
  };
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const changes = init.method === "PUT" || init.method === "DELETE";
    if (changes) sent.push(`${init.method} ${url} ${init.body ?? ""}`.trim());
    const items = [member("ada", "maintainer"), member("eva", "member")];
    const body = url.endsWith("/session") ? session : { items, next_cursor: null };
    if (changes && refusal !== null)
      return Promise.resolve(new Response(JSON.stringify({ detail: refusal }), { status: 409 }));
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
  window.history.replaceState(null, "", "/p/lab/members");
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
  refusal = null;
});

describe("members", () => {
  it("are added by login name, and removed after a question", async () => {
    open(["project.members"]);
    await userEvent.type(await screen.findByLabelText("Login name"), "maxim");
    await userEvent.click(screen.getByRole("button", { name: "Add" }));
    await waitFor(() => expect(screen.getByLabelText("Login name")).toHaveValue(""));
    await userEvent.click(screen.getByRole("button", { name: "Remove eva" }));
    const dialog = await screen.findByRole("dialog", { name: "Remove eva from lab?" });
    await userEvent.click(within(dialog).getByRole("button", { name: "Remove", hidden: true }));
    await waitFor(() =>
      expect(sent).toEqual([
        'PUT /api/v1/projects/lab/members/maxim {"role":"member"}',
        "DELETE /api/v1/projects/lab/members/eva",
      ]),
    );
  });

  it("keep what was typed when the server refuses, and say why", async () => {
    refusal = "There is no user maxim.";
    open(["project.members"]);
    await userEvent.type(await screen.findByLabelText("Login name"), "maxim");
    await userEvent.click(screen.getByRole("button", { name: "Add" }));
    expect(await screen.findByText("There is no user maxim.")).toBeInTheDocument();
    expect(screen.getByLabelText("Login name")).toHaveValue("maxim");
  });

  it("are listed, and cannot be changed, for those who are no maintainers", async () => {
    open(["project.read"]);
    const remove = await screen.findByRole("button", { name: "Remove ada" });
    expect(remove).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(remove);
    await userEvent.click(screen.getByRole("button", { name: "Add" }));
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(sent).toEqual([]);
  });
});
