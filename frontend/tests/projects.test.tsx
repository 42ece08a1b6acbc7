import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "@/app/App";
import { parseBytes, splitSize } from "@/lib/sizes";
import { makeSlug } from "@/lib/slug";

const sent: string[] = [];
let refusal: object | null = null;

const GIB = 2 ** 30;
const project = (slug: string, changes: object = {}) => ({
  id: `prj_${slug}`,
  slug,
  name: slug.toUpperCase(),
  description: "Walking",
  created_at: "2026-10-02T08:00:00Z",
  archived_at: null,
  role: "maintainer",
  permissions: [],
  members: 3,
  experiments: 12,
  runs: 40,
  jobs: 41,
  storage_used: 1.7 * GIB,
  storage_limit: 2 * GIB,
  ...changes,
});

const removed = (slug: string, changes: object) => ({
  ...project(slug),
  deleted_at: "2026-11-01T08:00:00Z",
  deleted_by: "ada",
  restorable_until: "2026-12-01T08:00:00Z",
  removal_started_at: null,
  unfinished_jobs: 0,
  ...changes,
});

const pools = [
  {
    name: "gpu",
    projects: [{ project: "lab", name: "LAB", share: 1, since: "2026-10-02T08:00:00Z" }],
    paused_at: "2026-11-01T08:00:00Z",
    pause_reason: "Moved",
    slots: 4,
    free_slots: 1,
  },
  { name: "teaching", projects: [], paused_at: null, slots: 2, free_slots: 2 },
];
const THRESHOLD = {
  name: "solved",
  series: "evaluation/mean",
  value: 195,
  direction: "at_least",
  runs: 3,
  pending_runs: 2,
};
let thresholds: object[] = [];
let deleted: object[] = [];
let projects = [project("lab")];

function open(path: string, permissions: string[], ofServer: string[] = []): void {
  const lab = { project_id: "prj_lab", slug: "lab", name: "LAB", role: "member", archived: false };
  const session = {
    user: "eva",
    is_admin: ofServer.length > 0,
    projects: [{ ...lab, permissions }],
    permissions: ofServer,
    csrf_token: "x",
    scopes: [],
  };
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const changes = ["POST", "PUT", "PATCH", "DELETE"].includes(init.method ?? "");
    if (changes) sent.push(`${init.method} ${url} ${init.body ?? ""}`.trim());
    if (changes && refusal !== null)
      return Promise.resolve(new Response(JSON.stringify(refusal), { status: 409 }));
    const { pathname } = new URL(url, "http://x");
    const slug = pathname.match(/^\/api\/v1\/projects\/([\w-]+)/)?.[1];
    const body = pathname.endsWith(":deleted")
      ? { items: deleted, next_cursor: null }
      : pathname.endsWith("/pools")
        ? { items: pools, next_cursor: null }
        : pathname.endsWith("/session")
          ? session
          : pathname.endsWith("/thresholds")
            ? { items: thresholds, next_cursor: null }
            : pathname.endsWith("/members")
              ? { items: [], next_cursor: null }
              : slug !== undefined
                ? (projects.find((one) => one.slug === slug) ?? projects[0])
                : changes
                  ? projects[0]
                  : { items: projects, next_cursor: null };
    return Promise.resolve(new Response(JSON.stringify(body ?? {}), { status: body ? 200 : 404 }));
  });
  window.history.replaceState(null, "", path);
  render(<App />);
}

beforeEach(() => {
  sent.length = 0;
  refusal = null;
  deleted = [];
  thresholds = [];
  projects = [project("lab")];
});

describe("the list of projects", () => {
  it("shows what each holds, and archived ones apart", async () => {
    projects = [
      project("lab"),
      project("old", { archived_at: "2026-11-01T08:00:00Z", storage_limit: null }),
    ];
    open("/admin/projects", [], ["server.projects"]);
    const rows = await screen.findByRole("table", { name: "Projects" });
    expect(within(rows).getByRole("link", { name: "LAB" })).toHaveAttribute(
      "href",
      "/p/lab/settings",
    );
    const meter = within(rows).getByRole("meter", { name: "Storage of LAB" });
    expect(meter).toHaveAttribute("value", "0.85");
    expect(meter).toHaveTextContent("1.7 GiB of 2.0 GiB");
    expect(within(rows).queryByText("OLD")).toBeNull();
    const archived = screen.getByRole("table", { name: "Archived projects" });
    expect(within(archived).getByText("1.7 GiB")).toBeInTheDocument();
  });

  it("makes a project, with the slug that the name gives unless one is typed", async () => {
    open("/admin/projects", [], ["server.projects"]);
    await userEvent.click(await screen.findByRole("button", { name: "New project" }));
    const dialog = await screen.findByRole("dialog", { name: "New project" });
    const send = within(dialog).getByRole("button", { name: "Create", hidden: true });
    expect(send).toBeDisabled();
    await userEvent.type(within(dialog).getByLabelText(/^Name/), "Zürich Lab 2");
    expect(within(dialog).getByLabelText("Slug")).toHaveAttribute("placeholder", "zurich-lab-2");
    await userEvent.type(within(dialog).getByLabelText("Storage limit"), "1.5");
    await userEvent.click(send);
    await waitFor(() => expect(window.location.pathname).toBe("/p/lab/members"));
    expect(sent).toEqual([
      'POST /api/v1/projects {"name":"Zürich Lab 2","slug":null,"description":"",' +
        `"storage_limit":${1.5 * GIB},"pools":null}`,
    ]);
  });

  it("shows a refusal at its field and keeps what was typed", async () => {
    const taken = "Another project has this name.";
    refusal = { detail: taken, errors: [{ pointer: "/name", code: "name_taken", message: taken }] };
    open("/admin/projects", [], ["server.projects"]);
    await userEvent.click(await screen.findByRole("button", { name: "New project" }));
    const name = await screen.findByLabelText(/^Name/);
    await userEvent.type(name, "Lab");
    await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
    expect(await screen.findAllByText(taken)).toHaveLength(1);
    expect(name).toHaveValue("Lab");
    expect(name).toBeInvalid();
  });

  it("lets nobody but administrators make projects", async () => {
    open("/admin/projects", []);
    const button = await screen.findByRole("button", { name: "New project" });
    expect(button).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(button);
    expect(screen.queryByRole("dialog")).toBeNull();
  });
});

describe("deleted projects", () => {
  it("are listed with the time until their content goes, and restored", async () => {
    // The page counts whole hours, so it may take half an hour to open.
    const until = (days: number) => new Date(Date.now() + (days * 24 + 0.5) * 3_600_000);
    deleted = [
      removed("gone", { restorable_until: until(12) }),
      removed("going", { removal_started_at: until(-1) }),
    ];
    open("/admin/projects", [], ["server.projects"]);
    const table = await screen.findByRole("table", { name: "Deleted projects" });
    expect(within(table).getByText("in 12 d 0 h")).toBeInTheDocument();
    expect(within(table).getByText("being removed")).toBeInTheDocument();
    await userEvent.click(within(table).getByRole("button", { name: "Restore GONE" }));
    await waitFor(() => expect(sent).toEqual(["POST /api/v1/projects/gone:undelete"]));
    expect(within(table).queryByRole("button", { name: "Restore GOING" })).toBeNull();
  });
});

describe("the settings of a project", () => {
  it("rename it and change its description", async () => {
    open("/p/lab/settings", ["project.settings"]);
    const name = await screen.findByLabelText(/^Name/);
    expect(screen.getByRole("button", { name: "Save" })).toBeDisabled();
    await userEvent.clear(name);
    await userEvent.type(name, "Motion");
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() =>
      expect(sent).toEqual([
        'PATCH /api/v1/projects/lab {"name":"Motion","description":"Walking"}',
      ]),
    );
  });

  it("declare, show and remove thresholds", async () => {
    thresholds = [THRESHOLD];
    open("/p/lab/settings", ["project.settings"]);
    const table = await screen.findByRole("table", { name: "Thresholds" });
    expect(within(table).getByText("at least 195")).toBeInTheDocument();
    expect(screen.getByText("2 runs still to be compared")).toBeInTheDocument();
    const address = within(table).getByRole("link", { name: "solved" }).getAttribute("href");
    expect(address).toContain("/p/lab/runs?sort=reached.solved");
    await userEvent.click(screen.getByRole("button", { name: "Declare…" }));
    const dialog = await screen.findByRole("dialog", { name: "Declare a threshold" });
    const submit = within(dialog).getByRole("button", { name: "Declare", hidden: true });
    expect(submit).toBeDisabled();
    await userEvent.type(within(dialog).getByLabelText(/^Name/), "small-loss");
    await userEvent.clear(within(dialog).getByLabelText(/^Series/));
    await userEvent.type(within(dialog).getByLabelText(/^Series/), "loss");
    await userEvent.click(within(dialog).getByText("At most the value"));
    await userEvent.type(within(dialog).getByLabelText(/^Value/), "-0.5");
    await userEvent.click(submit);
    await waitFor(() =>
      expect(sent).toEqual([
        'PUT /api/v1/projects/lab/thresholds/small-loss {"series":"loss","value":-0.5,' +
          '"direction":"at_most"}',
      ]),
    );
    await userEvent.click(within(table).getByRole("button", { name: "Remove…" }));
    await userEvent.click(await screen.findByRole("button", { name: "Remove", hidden: true }));
    await waitFor(() => expect(sent[1]).toBe("DELETE /api/v1/projects/lab/thresholds/solved"));
  });

  it("leave the storage limit to administrators, with the reason", async () => {
    open("/p/lab/settings", ["project.settings"]);
    const button = await screen.findByRole("button", { name: "Change the limit" });
    expect(button).toHaveAttribute("aria-disabled", "true");
    expect(screen.getByLabelText("Storage limit")).toHaveAttribute("readonly");
    expect(screen.getByRole("meter", { name: "Storage used" })).toHaveAttribute("value", "0.85");
    await userEvent.hover(button);
    expect(await screen.findByText(/Only administrators of the server/)).toBeInTheDocument();
    expect(screen.getByTitle("Moved")).toHaveTextContent("paused");
    expect(screen.queryByText("teaching")).toBeNull();
  });

  it.each([
    [1.9, "high"],
    [2, "full"],
    [2.5, "full"],
  ])("show %d GiB of 2 GiB, and when nothing more can be submitted", async (used, level) => {
    projects = [project("lab", { storage_used: used * GIB })];
    open("/p/lab/settings", ["project.settings"]);
    const meter = await screen.findByRole("meter", { name: "Storage used" });
    expect(meter.parentElement).toHaveAttribute("data-level", level);
    const alert = screen.queryByRole("alert");
    if (level === "high") {
      expect(screen.getByText("used of 2.0 GiB, 102.4 MiB left")).toBeVisible();
      expect(alert).toBeNull();
    } else {
      expect(alert).toHaveTextContent("Nothing can be submitted: the limit is reached");
      expect(alert).toHaveTextContent("ask an administrator to raise the limit");
    }
  });

  it("remove the limit of a project of which an administrator is no member", async () => {
    projects = [project("other", { role: null })];
    open("/p/other/settings", [], ["server.projects"]);
    const limit = await screen.findByLabelText("Storage limit");
    expect(screen.queryByRole("link", { name: "Service accounts" })).toBeNull();
    await userEvent.clear(limit);
    await userEvent.click(screen.getByRole("button", { name: "Change the limit" }));
    await waitFor(() =>
      expect(sent).toEqual(['PATCH /api/v1/projects/other {"storage_limit":null}']),
    );
  });

  it("archive it, and restore an archived one", async () => {
    open("/p/lab/settings", ["project.settings"]);
    await userEvent.click(await screen.findByRole("button", { name: "Archive" }));
    await waitFor(() => expect(sent).toEqual(["POST /api/v1/projects/lab:archive"]));
  });

  it("delete it when it is archived and its slug was typed", async () => {
    open("/p/lab/settings", ["project.settings"]);
    const early = await screen.findByRole("button", { name: "Delete…" });
    expect(early).toHaveAttribute("aria-disabled", "true");
    await userEvent.hover(early);
    expect(await screen.findByText("Archive the project first.")).toBeInTheDocument();
    projects = [project("lab", { archived_at: "2026-11-01T08:00:00Z" })];
    await userEvent.click(screen.getByRole("button", { name: "Archive" }));
    await userEvent.click(await screen.findByRole("button", { name: "Restore" }));
    await userEvent.click(screen.getByRole("button", { name: "Delete…" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete LAB?" });
    const send = within(dialog).getByRole("button", { name: /^Delete the/, hidden: true });
    await userEvent.type(within(dialog).getByRole("textbox", { hidden: true }), "la");
    expect(send).toBeDisabled();
    await userEvent.type(within(dialog).getByRole("textbox", { hidden: true }), "b");
    await userEvent.click(send);
    await waitFor(() =>
      expect(sent).toEqual([
        "POST /api/v1/projects/lab:archive",
        "POST /api/v1/projects/lab:restore",
        "DELETE /api/v1/projects/lab?confirm=lab",
      ]),
    );
  });

  it("are readable, and locked, for members", async () => {
    open("/p/lab/settings", ["project.read"]);
    expect(await screen.findByLabelText(/^Name/)).toHaveAttribute("readonly");
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await userEvent.click(screen.getByRole("button", { name: "Archive" }));
    expect(sent).toEqual([]);
  });
});

describe("sizes and slugs", () => {
  it.each([
    [null, { number: "", unit: "GiB" }],
    [2 * GIB, { number: "2", unit: "GiB" }],
    [1536 * GIB, { number: "1.5", unit: "TiB" }],
    [0, { number: "0", unit: "MiB" }],
  ] as const)("turn %s bytes into a number with a unit and back", (bytes, size) => {
    expect(splitSize(bytes)).toEqual(size);
    expect(parseBytes(size)).toBe(bytes);
  });

  it.each(["-1", "1e3", "many", "1.2.3"])("find no size in %s", (number) => {
    expect(parseBytes({ number, unit: "GiB" })).toBeNaN();
  });

  it("preview the slug of a name", () => {
    expect(makeSlug("  Atari 100k: Frühling! ")).toBe("atari-100k-fruhling");
    expect(makeSlug("火")).toBe("");
  });
});
