/** Moving an experiment to another project, and pages that show it meanwhile. */
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { listMoveTargets } from "@/api/access";
import type { Run, Session } from "@/api/types";
import { App } from "@/app/App";
import { experiments } from "../dev/mock/experiments.ts";

const MAINTAINER = ["project.read", "run.submit", "run.control_any", "project.settings"];
const membership = (slug: string, changes: object = {}) => ({
  project_id: `prj_${slug}`,
  slug,
  name: slug.toUpperCase(),
  role: "maintainer",
  archived: false,
  permissions: MAINTAINER,
  ...changes,
});
const asMember = { role: "member", permissions: ["project.read", "run.submit"] };
const found = experiments.find((one) => one.view.name === "CartPole PPO");
const ID = found?.view.id ?? "";
const experiment = (project: string) => ({ ...found?.view, project });
const RUN = found?.runs[0]?.view as Run;
const ended = found?.runs.map((run) => run.view) ?? [];

let projects: object[];
let runs: object[];
/** Slug of the project in which the experiment is; `null` for one that the caller cannot see. */
let place: string | null;
let refusal: { status: number; body: object } | null;
const sent: string[] = [];
let send: ((event: object) => void) | null = null;

function answerOf(path: string, project: string | null): object | undefined {
  if (path === "/session")
    return { user: "ada", projects, permissions: [], scopes: [], csrf_token: "x" };
  if (path === `/experiments/${ID}`) {
    const isSeen = place !== null && (project === null || project === place);
    return isSeen ? experiment(place ?? "") : undefined;
  }
  if (path === `/runs/${RUN.id}`)
    return place === null
      ? undefined
      : { ...RUN, project: place, jobs: [], attempts: [], definition: found?.view.definition };
  if (path !== `/experiments/${ID}/runs`) return { items: [], next_cursor: null };
  return project === place ? { items: runs, next_cursor: null } : undefined;
}

/** A stream whose events are those of all subscriptions of the page. */
function stream(body: string): Response {
  send = null;
  const { subscriptions } = JSON.parse(body) as { subscriptions: unknown[] };
  const all = subscriptions.map((_, number) => number).join(",");
  const encoder = new TextEncoder();
  const content = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (!body.includes('"moved"')) return;
      send = (event) =>
        controller.enqueue(
          encoder.encode(
            `id: ${(event as { id: number }).id}\ndata: ${all}\ndata: ${JSON.stringify(event)}\n\n`,
          ),
        );
    },
  });
  return new Response(content);
}

/** Sends an event once the page follows moves: each new subscription opens the stream anew. */
async function tell(event: object): Promise<void> {
  await waitFor(() => expect(send).not.toBeNull());
  send?.(event);
}

async function serve(url: string, init: RequestInit): Promise<Response> {
  const { pathname, searchParams } = new URL(url, "http://x");
  const path = pathname.replace("/api/v1", "");
  if (path.endsWith("/events:stream")) return stream(String(init.body));
  // Without curves and scores nothing is drawn: jsdom has no canvas.
  if (path === "/series:query" || path === "/statistics:aggregate")
    return new Promise(() => undefined);
  if (init.method === "POST" && path.endsWith(":move")) {
    sent.push(`${path} ${init.body}`);
    if (refusal !== null)
      return new Response(JSON.stringify(refusal.body), { status: refusal.status });
    place = (JSON.parse(String(init.body)) as { to: string }).to;
    return new Response(JSON.stringify(experiment(place)));
  }
  const body = answerOf(path, searchParams.get("project"));
  const missing = { code: "not_found", detail: "There is no such experiment." };
  return new Response(JSON.stringify(body ?? missing), { status: body ? 200 : 404 });
}

function open(path: string): void {
  window.history.replaceState(null, "", path);
  render(<App />);
}

/** Opens the menu of the experiment's page; returns its item. */
async function moveItem(): Promise<HTMLElement> {
  await userEvent.click(await screen.findByRole("button", { name: "More actions" }));
  return screen.findByRole("menuitem", { name: "Move to another project…" });
}

beforeEach(() => {
  projects = [membership("lab"), membership("atari"), membership("mine", asMember)];
  runs = ended;
  place = "lab";
  send = null;
  refusal = null;
  sent.length = 0;
  vi.stubGlobal("fetch", serve);
});

describe("the projects to which an experiment can be moved", () => {
  const rightIn = (memberships: object[]) =>
    listMoveTargets({ projects: memberships } as unknown as Session, "lab");

  it("are those that the caller maintains, without archived ones", () => {
    const old = membership("old", { archived: true });
    const { right, targets } = rightIn([...projects, old]);
    expect(right.allowed).toBe(true);
    expect(targets.map((one) => one.slug)).toEqual(["atari"]);
  });

  it.each([
    [
      [membership("lab", asMember), membership("atari")],
      "Only maintainers of lab may move its experiments. Your role is member.",
    ],
    [
      [membership("lab"), membership("mine", asMember)],
      "You are a maintainer of no other project to which it could be moved.",
    ],
  ])("are none, for a reason (%#)", (memberships, reason) => {
    expect(rightIn(memberships)).toEqual({ right: { allowed: false, reason }, targets: [] });
  });
});

describe("the page of an experiment", () => {
  it("moves it, and shows it in the other project", async () => {
    projects = [membership("lab"), membership("atari"), membership("zoo")];
    open(`/p/lab/experiments/${ID}`);
    await userEvent.click(await moveItem());
    const dialog = await screen.findByRole("dialog", { name: "Move to another project" });
    const send = within(dialog).getByRole("button", { name: "Move the experiment", hidden: true });
    expect(send).toBeDisabled();
    expect(dialog).toHaveTextContent(/audit entries until now.* stay with this project/);
    const projectField = within(dialog).getByRole("combobox", { hidden: true });
    await userEvent.click(projectField);
    const list = document.getElementById(projectField.getAttribute("aria-controls") ?? "");
    const options = await within(list as HTMLElement).findAllByRole("option", { hidden: true });
    expect(options.map((one) => one.textContent)).toEqual(["ATARI atari", "ZOO zoo"]);
    await userEvent.click(options[0] as HTMLElement);
    await userEvent.click(send);
    expect(await screen.findByText("Moved to ATARI")).toBeVisible();
    expect(sent).toEqual([`/projects/lab/experiments/${ID}:move {"to":"atari"}`]);
    await waitFor(() => expect(window.location.pathname).toBe(`/p/atari/experiments/${ID}`));
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(await screen.findByRole("heading", { name: /CartPole PPO/ })).toBeVisible();
  });

  it.each([
    ["id_taken", "/to", "The other project has this experiment already."],
    ["experiment_active", null, "1 of its jobs have not ended. Wait until they end."],
    ["storage_limit_reached", null, "The project stores 2 GiB of files and may store 2 GiB."],
  ])("shows the server's sentence on %s", async (code, pointer, detail) => {
    const errors = pointer === null ? [] : [{ pointer, code, message: detail }];
    refusal = { status: 409, body: { code, detail, errors } };
    open(`/p/lab/experiments/${ID}`);
    await userEvent.click(await moveItem());
    await userEvent.click(
      await screen.findByRole("button", { name: "Move the experiment", hidden: true }),
    );
    expect(await screen.findAllByText(detail)).toHaveLength(1);
    expect(window.location.pathname).toBe(`/p/lab/experiments/${ID}`);
  });

  it("says that runs must end first", async () => {
    runs = [...ended.slice(1), { ...ended[0], state: "paused" }];
    open(`/p/lab/experiments/${ID}`);
    const item = await moveItem();
    expect(item).toHaveAttribute("aria-disabled", "true");
    await userEvent.hover(item);
    expect(await screen.findByRole("tooltip")).toHaveTextContent(
      "1 run of it must end first, or be cancelled.",
    );
    await userEvent.click(item);
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  const moved = { id: 7, type: "moved", experiment_id: ID, data: { id: ID, project: "lab" } };

  it("says that somebody else moved it, and where it is", async () => {
    open(`/p/lab/experiments/${ID}`);
    await screen.findByRole("button", { name: "More actions" });
    place = "atari";
    await tell(moved);
    expect(await screen.findByText("This experiment was moved to ATARI")).toBeVisible();
    await waitFor(() => expect(window.location.pathname).toBe(`/p/atari/experiments/${ID}`));
    expect(await screen.findByRole("heading", { name: /CartPole PPO/ })).toBeVisible();
  });

  it("says that it was moved to a project that the caller does not see", async () => {
    open(`/p/lab/experiments/${ID}`);
    await screen.findByRole("button", { name: "More actions" });
    place = null;
    await tell(moved);
    expect(await screen.findByText(/You are no member of that project/)).toBeVisible();
  });

  it("leads from the address of before the move to the other project", async () => {
    place = "atari";
    open(`/p/lab/experiments/${ID}`);
    expect(await screen.findByText("Not in this project")).toBeVisible();
    await userEvent.click(await screen.findByRole("link", { name: "Open it in ATARI" }));
    await waitFor(() =>
      expect(screen.getByRole("heading", { name: /CartPole PPO/ })).toBeVisible(),
    );
  });
});

describe("the page of a run", () => {
  const moved = { id: 7, type: "moved", experiment_id: ID, data: { id: ID, project: "lab" } };

  it("goes with the run to the other project", async () => {
    open(`/p/lab/runs/${RUN.id}?tab=log`);
    await screen.findByRole("tab", { name: "Log" });
    place = "atari";
    await tell(moved);
    await waitFor(() => expect(window.location.pathname).toBe(`/p/atari/runs/${RUN.id}`));
    expect(window.location.search).toContain("tab=log");
  });

  it("says that it is gone, if the caller does not see the other project", async () => {
    open(`/p/lab/runs/${RUN.id}?tab=log`);
    await screen.findByRole("tab", { name: "Log" });
    place = null;
    await tell(moved);
    await waitFor(() => expect(screen.queryByRole("tab", { name: "Log" })).toBeNull());
  });
});

describe("the list of experiments", () => {
  it("is read again when one was moved away", async () => {
    const read = vi.fn(serve);
    vi.stubGlobal("fetch", read);
    const listed = () =>
      read.mock.calls.filter(([url]) => /^\/api\/v1\/experiments\?(.*&)?project=lab/.test(url));
    open("/p/lab/experiments");
    expect(await screen.findByText("No experiments yet")).toBeVisible();
    const before = listed().length;
    await tell({ id: 7, type: "moved", experiment_id: ID, data: {} });
    await waitFor(() => expect(listed().length).toBeGreaterThan(before));
    const streams = read.mock.calls.filter(([url]) => url.includes("/events:stream"));
    expect(String(streams.at(-1)?.[1].body)).toContain('"moved"');
  });
});
