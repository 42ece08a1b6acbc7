/** What a run shows while its attempt does not train, and how an attempt updated. */
import { screen } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import { AttemptsTab } from "@/features/run/AttemptsTab";
import { RunFacts } from "@/features/run/RunFacts";
import { StateBadge } from "@/ui/StateBadge";
import { attempt, mockServer, run, show } from "./runFixtures";

beforeEach(mockServer);

it.each([
  ["starting", /loads its snapshot and libraries/],
  ["compiling", /is being compiled/],
] as const)("the badge of a run that is %s says so, and what it means", (phase, hint) => {
  show(<StateBadge state="running" phase={phase} />);
  const badge = screen.getByText(phase);
  expect(badge).toHaveAttribute("data-state", "running");
  expect(badge).toHaveAttribute("title", expect.stringMatching(hint));
  expect(screen.queryByText("running")).toBeNull();
});

it("the badge of a run that trains shows its state alone", () => {
  show(<StateBadge state="running" phase={null} />);
  expect(screen.getByText("running")).not.toHaveAttribute("title");
});

it("an attempt says how its updates ran, where that is known", () => {
  const shown = { fences: {}, resumed_from: {}, slot: 0, started_at: "2026-11-29T00:00:00Z" };
  const attempts = [
    attempt({ ...shown, id: "att_1", compile: "compiled", worker_name: "first" }),
    attempt({ ...shown, id: "att_2", compile: null, worker_name: "second" }),
  ];
  show(<AttemptsTab run={run({ attempts, created_at: "2026-11-29T00:00:00Z" })} />);
  expect(screen.getByText("compiled updates")).toHaveAttribute(
    "title",
    expect.stringMatching(/roundings/),
  );
  expect(screen.getAllByText(/updates$/)).toHaveLength(1);
});

it.each([
  [null, 2],
  ["compiling", 0],
] as const)("a run in the phase %s shows a speed and the time left: %i", (phase, count) => {
  const progress = {
    env_step: 20,
    update: 1,
    episode: 1,
    fraction: 0.2,
    env_steps_per_second: 2,
  };
  const snapshots = { written: null, verified: null };
  const shown = { state: "running", phase, progress, snapshots, latest_evaluation: null } as const;
  show(<RunFacts run={run(shown)} />);
  expect(screen.queryAllByText(/\/s$| left$/)).toHaveLength(count);
});
