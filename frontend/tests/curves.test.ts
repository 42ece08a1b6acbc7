import { describe, expect, it, vi } from "vitest";
import type { RunDetail, SeriesResult, Snapshot } from "@/api/types";
import { RunCurves } from "@/live/curves";
import { buildFenceChain, isSuperseded } from "@/live/fenceChain";
import { type PointColumns, SeriesRing } from "@/live/seriesRing";
import { readMessages } from "@/live/sse";

const VIEW = { axis: "env_step", superseded: false } as const;

function points(steps: number[], fence = 1, seq = 1): PointColumns {
  return {
    fence,
    seq,
    env_step: steps,
    update: steps,
    episode: steps,
    wall: steps,
    value: steps.map((step) => step / 10),
  };
}

describe("ring", () => {
  it("grows in order and overwrites the oldest point when full", () => {
    const ring = new SeriesRing(600);
    for (let i = 0; i < 1000; i += 1) ring.push(points([i]));
    expect(ring.length).toBe(600);
    expect(ring.dropped).toBe(400);
    expect(Array.from(ring.column("env_step"))).toEqual(
      Array.from({ length: 600 }, (_, i) => i + 400),
    );
  });

  it("reads the non-finite numbers of the API", () => {
    const ring = new SeriesRing();
    ring.push({ ...points([1, 2, 3]), value: ["NaN", "Infinity", -1] });
    expect(Array.from(ring.column("value"))).toEqual([Number.NaN, Number.POSITIVE_INFINITY, -1]);
  });
});

describe("sse", () => {
  const stream =
    'retry: 1000\n\n: ping\n\nid: 7\nevent: points\ndata: {"a":\ndata: 1}\n\n' +
    "id: 8\r\ndata: x\r\n\r\n";

  it.each([1, 2, 3, 7, 1000])("parses a stream cut into chunks of %d bytes", async (size) => {
    const bytes = new TextEncoder().encode(stream);
    const chunks: Uint8Array[] = [];
    for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.slice(i, i + size));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    const onBytes = vi.fn();
    const found = [];
    for await (const message of readMessages(body, onBytes)) found.push(message);
    expect(found).toEqual([
      { id: "7", event: "points", data: '{"a":\n1}' },
      { id: "8", event: undefined, data: "x" },
    ]);
    expect(onBytes).toHaveBeenCalledTimes(chunks.length);
  });
});

function run(
  resumedFrom: (string | null)[],
  schedule = "train",
): Pick<RunDetail, "id" | "attempts" | "jobs"> {
  const attempts = resumedFrom.map((from, i) => ({
    job_id: "job",
    fences: { r: i + 1 },
    resumed_from: { r: from },
  }));
  return { id: "r", attempts, jobs: [{ id: "job", schedule }] } as unknown as RunDetail;
}

function snapshot(id: string, fence: number, env_step: number, update = env_step): Snapshot {
  return { id, fence, env_step, update } as unknown as Snapshot;
}

describe("fence chain", () => {
  it("supersedes points after the snapshot from which a later attempt resumed", () => {
    const chain = buildFenceChain(run([null, "s1"]), [snapshot("s1", 1, 100)]);
    if (chain === null) throw new Error("no chain");
    expect(isSuperseded(chain, 1, 100, 100)).toBe(false);
    expect(isSuperseded(chain, 1, 100, 101)).toBe(true);
    expect(isSuperseded(chain, 1, 101, 100)).toBe(true);
    expect(isSuperseded(chain, 2, 500, 500)).toBe(false);
    expect(isSuperseded(chain, 3, 500, 500)).toBe(false);
  });

  it("leaves out an attempt that is no predecessor of the newest", () => {
    const chain = buildFenceChain(run([null, "s1", "s1"]), [
      snapshot("s1", 1, 100),
      snapshot("s2", 2, 200),
    ]);
    expect(chain && isSuperseded(chain, 2, 50, 50)).toBe(true);
    expect(chain && isSuperseded(chain, 1, 50, 50)).toBe(false);
  });

  it("takes the earliest bound along the chain", () => {
    const chain = buildFenceChain(run([null, "s1", "s0"]), [
      snapshot("s0", 1, 50),
      snapshot("s1", 1, 100),
    ]);
    expect(chain && isSuperseded(chain, 1, 80, 80)).toBe(true);
  });

  it("is unknown when a snapshot is missing, and ignores jobs that do not train", () => {
    expect(buildFenceChain(run([null, "gone"]), [])).toBeNull();
    expect(buildFenceChain(run([null], "evaluate"), [])?.counted.size).toBe(0);
  });
});

function history(points: number): SeriesResult {
  const series = {
    run_id: "r",
    series: "a/b",
    min: [1, null],
    max: [3, null],
    mean: [2, null],
    last: [3, null],
    n: [points, 0],
    nonfinite: [0, 0],
    points,
  };
  return {
    x: "env_step",
    grid: [10, 20],
    start: 0,
    end: 30,
    width: 10,
    series: [series],
    groups: [],
    cursor: 5,
  };
}

describe("curves", () => {
  it("joins history and exact points, and hides superseded ones unless asked", () => {
    const curves = new RunCurves("r");
    curves.reset(["a/b"], history(4));
    curves.append("a/b", points([100, 200, 300]));
    curves.append("a/b", points([150, 250], 2));
    curves.setChain({
      newest: 2,
      counted: new Map([
        [1, { envStep: 100, update: 100 }],
        [2, null],
      ]),
    });
    const shown = curves.curve("a/b", VIEW);
    expect(shown.x).toEqual([10, 100, 150, 250]);
    expect(shown.points).toBe(7);
    const all = curves.curve("a/b", { ...VIEW, superseded: true });
    expect(all.x).toEqual([10, 100, 150, 200, 250, 300]);
    expect(all.superseded.filter((y) => y !== null)).toEqual([20, 30]);
  });

  it("keeps the history on screen until a replay has brought every point", () => {
    const curves = new RunCurves("r");
    curves.reset(["a/b"], history(3));
    curves.awaitReplay(3);
    curves.append("a/b", points([1, 2]));
    expect(curves.curve("a/b", VIEW).x).toEqual([10]);
    curves.append("a/b", points([3]));
    expect(curves.curve("a/b", VIEW).x).toEqual([1, 2, 3]);
  });

  it("clips to the visible range and notifies once per new series", () => {
    const curves = new RunCurves("r");
    const changed = vi.fn();
    curves.subscribe(changed);
    curves.append("a/b", points([1, 5, 9]));
    curves.append("a/b", points([12]));
    expect(curves.curve("a/b", { ...VIEW, start: 4, end: 10 }).x).toEqual([5, 9]);
    expect(changed).toHaveBeenCalledTimes(1);
    expect(curves.names()).toEqual(["a/b"]);
  });
});
