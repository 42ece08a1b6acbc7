import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { checkRight, checkRightToControl } from "@/api/access";
import { keys } from "@/api/queries";
import type { Membership, Permission, Run, Session } from "@/api/types";
import { Actions } from "@/features/experiment/Actions";
import { RunActions } from "@/features/run/RunActions";
import { job, mockServer, run, sent } from "./runFixtures";

const PERMISSIONS: Record<Membership["role"], Permission[]> = {
  viewer: ["project.read"],
  member: ["project.read", "run.submit", "run.control_own"],
  maintainer: ["project.read", "run.submit", "run.control_own", "run.control_any", "project.audit"],
};

function session(role: Membership["role"], archived = false): Session {
  const membership: Membership = {
    project_id: "prj_1",
    slug: "atari",
    name: "Atari",
    role,
    archived,
    permissions: PERMISSIONS[role],
  };
  return {
    user: "eva",
    user_id: "usr_eva",
    display_name: "",
    is_admin: false,
    project: "atari",
    projects: [membership],
    permissions: ["account"],
    scopes: ["read", "submit", "admin"],
    csrf_token: "x",
    via: "cookie",
    setup_needed: false,
  };
}

const byAda = { project: "atari", created_by: "ada" };
const byEva = { project: "atari", created_by: "eva" };

function show(role: Membership["role"], element: React.ReactNode): void {
  const client = new QueryClient();
  client.setQueryData(keys.session, session(role));
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>{element}</QueryClientProvider>
    </MantineProvider>,
  );
}

beforeEach(mockServer);

describe("rights", () => {
  it.each([
    ["viewer", byEva, "Only maintainers and members of atari may cancel this run."],
    ["viewer", byAda, "Only maintainers of atari and ada, who submitted it, may cancel this run."],
    ["member", byAda, "Only maintainers of atari and ada, who submitted it, may cancel this run."],
  ] as const)("refuse a %s with the reason", (role, object, reason) => {
    const right = checkRightToControl(session(role), object, "cancel this run");
    expect(right.reason).toBe(`${reason} Your role is ${role}.`);
  });

  it.each([
    ["member", byEva],
    ["maintainer", byAda],
  ] as const)("let a %s act", (role, object) => {
    expect(checkRightToControl(session(role), object, "cancel this run").allowed).toBe(true);
  });

  it("hold in one project only, and not for submissions to an archived one", () => {
    expect(checkRight(session("maintainer"), "project.audit", "atari").allowed).toBe(true);
    expect(checkRight(session("maintainer"), "project.audit", "mujoco").allowed).toBe(false);
    expect(checkRight(session("maintainer"), "server.audit", null).allowed).toBe(false);
    expect(checkRight(session("member", true), "run.submit", "atari").reason).toBe(
      "atari is archived: nothing can be submitted to it.",
    );
  });
});

describe("controls", () => {
  const running = run({
    ...byAda,
    state: "running",
    failure: null,
    jobs: [job({ ...byAda, state: "running" })],
  });

  it("of another user's run are disabled, with the reason as tooltip", async () => {
    show("member", <RunActions run={running} />);
    const pause = screen.getByRole("button", { name: "Pause" });
    expect(pause).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(pause);
    await userEvent.click(screen.getByRole("button", { name: "Cancel…" }));
    expect(sent).toEqual([]);
    expect(screen.queryByRole("dialog")).toBeNull();
    await userEvent.hover(pause);
    expect(await screen.findByText(/and ada, who submitted it, may pause this run/)).toBeVisible();
  });

  it("of another user's run work for a maintainer", async () => {
    show("maintainer", <RunActions run={running} />);
    await userEvent.click(screen.getByRole("button", { name: "Pause" }));
    expect(sent.map((one) => one.url)).toEqual(["/jobs/job_1:pause"]);
  });

  it("of an experiment act on the user's own runs only", async () => {
    const runs = [
      { ...byAda, id: "run_1", job_id: "job_1", state: "running" },
      { ...byEva, id: "run_2", job_id: "job_2", state: "running" },
    ] as Run[];
    show("member", <Actions experiment={{ id: "x", ...byAda } as never} runs={runs} />);
    await userEvent.click(screen.getByRole("button", { name: "Pause 1 of 2" }));
    expect(sent.map((one) => one.url)).toEqual(["/jobs/job_2:pause"]);
  });
});
