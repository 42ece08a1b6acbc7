import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";
import { buildAuditParameters, readAuditSearch } from "@/features/admin/auditSearch";

const urls: string[] = [];
const entry = (id: number, changes: object) => ({
  id,
  at: "2026-11-24T09:00:00Z",
  actor: "user:usr_1",
  user_id: "usr_1",
  user: "ada",
  credential: "ses_1",
  address: "192.0.2.1",
  project_id: "prj_1",
  action: "token.revoke",
  object_type: "token",
  object_id: "tok_0123456789",
  outcome: "allowed",
  code: null,
  count: 1,
  data: {},
  previous_hash: "0".repeat(64),
  hash: "f".repeat(64),
  ...changes,
});

function serve(permissions: string[], pages: Record<string, object[]>): void {
  const projects = [
    { project_id: "prj_1", slug: "lab", name: "Lab", role: "maintainer", archived: false },
  ].map((one) => ({ ...one, permissions }));
  const session = { user: "eva", projects, permissions: [], csrf_token: "x", scopes: [] };
  vi.stubGlobal("fetch", (url: string) => {
    urls.push(url);
    const cursor = new URL(url, "http://x").searchParams.get("cursor") ?? "";
    const body = url.endsWith("/session")
      ? session
      : { items: pages[cursor] ?? [], next_cursor: cursor === "" && pages.older ? "older" : null };
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

beforeEach(() => {
  urls.length = 0;
});

describe("audit log", () => {
  it("shows who did what, in pages, and all of an entry on a click", async () => {
    serve(["project.audit"], {
      "": [
        entry(3, { action: "job.move", data: { from: "running", to: "pausing" } }),
        entry(2, { outcome: "refused", code: "not_yours", count: 4, data: { route: "cancel" } }),
      ],
      older: [entry(1, { user: null, user_id: null, actor: "daemon:compactor" })],
    });
    open("/p/lab/audit");
    expect(await screen.findByText("not_yours × 4")).toBeVisible();
    expect(screen.getByText("running → pausing")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Show older entries" }));
    expect(await screen.findByText("compactor")).toBeVisible();
    await userEvent.click(screen.getByText("not_yours × 4"));
    const data = await screen.findByTitle("What changed");
    expect(data).toHaveTextContent('"route": "cancel"');
  });

  it("sends the filter of the URL to the list and to the export", async () => {
    serve(["project.audit"], { "": [] });
    open("/p/lab/audit?user=ada&outcome=refused&bogus=1");
    expect(await screen.findByText("No entry matches")).toBeVisible();
    expect(urls).toContain("/api/v1/audit?user=ada&outcome=refused&project=lab&limit=100");
    expect(screen.getByRole("link", { name: "Export as JSON lines" })).toHaveAttribute(
      "href",
      "/api/v1/audit:export?user=ada&outcome=refused&project=lab",
    );
    await userEvent.type(screen.getByLabelText("Action"), "token");
    await waitFor(() => expect(window.location.search).toContain("action=token"));
  });

  it("asks for nothing where the role does not permit it", async () => {
    serve(["project.read"], {});
    open("/p/lab/audit");
    expect(await screen.findByText(/Only maintainers of the project may read/)).toBeVisible();
    expect(urls.some((url) => url.includes("/audit"))).toBe(false);
  });

  it("includes the whole last day of a period", () => {
    const search = readAuditSearch({ since: "2026-11-01", until: "2026-11-02", outcome: "maybe" });
    const { since, until, outcome } = buildAuditParameters(search);
    expect(outcome).toBeUndefined();
    expect(Date.parse(String(until)) - Date.parse(String(since))).toBe(2 * 86_400_000);
    expect(readAuditSearch({ since: "yesterday" })).toEqual({});
  });
});
