/** Line 15.23: files to download. */
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Artifact, Evaluation, Snapshot } from "@/api/types";
import { buildEvaluationTable } from "@/features/run/evaluationTable";
import { FilesTab } from "@/features/run/FilesTab";
import { buildCsv } from "@/lib/csv";
import { answers, mockServer, run, show } from "./runFixtures";

beforeEach(mockServer);

describe("Line 15.23: files", () => {
  const file = (changes: Partial<Artifact>): Artifact =>
    ({
      id: "art_1",
      name: "policy.onnx",
      kind: "export",
      size: 2048,
      sha256: "ab".repeat(32),
      stored: true,
      created_at: "2026-01-01T00:00:00Z",
      ...changes,
    }) as Artifact;

  it("of exports and snapshots are links where the server has stored them", async () => {
    const files = [
      file({}),
      file({ id: "art_2", name: "later.bin", stored: false }),
      file({ id: "art_3", kind: "snapshot", name: "state" }),
    ];
    const snapshot = {
      id: "snp_1",
      state: "verified",
      env_step: 50,
      files: [{ name: "weights", size: 9, artifact_id: "art_9" }],
    };
    answers.set("/runs/run_1/artifacts", {
      status: 200,
      body: { items: files, next_cursor: null },
    });
    answers.set("/runs/run_1/snapshots", {
      status: 200,
      body: { items: [snapshot as unknown as Snapshot], next_cursor: null },
    });
    show(<FilesTab run={run({ state: "succeeded" })} />);
    const link = await screen.findByRole("link", { name: "Download policy.onnx" });
    expect(link).toHaveAttribute("href", "/api/v1/artifacts/art_1/content");
    expect(screen.getByText("not uploaded yet:")).toBeVisible();
    expect(screen.queryByRole("link", { name: "Download later.bin" })).toBeNull();
    await userEvent.click(
      await screen.findByRole("button", { name: "Download the snapshot at 50" }),
    );
    expect(await screen.findByRole("menuitem", { name: /weights/ })).toHaveAttribute(
      "href",
      "/api/v1/artifacts/art_9/content",
    );
  });

  it("of evaluations hold every digit, no spread of a single value, and no formula", () => {
    const row = {
      env_step: 10,
      episodes: 1,
      mean: 1 / 3,
      stdev: 0,
      returns: [1 / 3],
      metrics: {},
    } as unknown as Evaluation;
    const [header = "", line = ""] = buildEvaluationTable([row]).split("\r\n");
    const cells = new Map(header.split(",").map((name, i) => [name, line.split(",")[i]]));
    expect([cells.get("mean"), cells.get("stdev"), cells.get("returns")]).toEqual([
      "0.3333333333333333",
      "",
      "0.3333333333333333",
    ]);
    expect(buildCsv(["a"], [["=1+1"], ['say "x", y'], [-2]])).toBe(
      'a\r\n\'=1+1\r\n"say ""x"", y"\r\n-2\r\n',
    );
  });
});
