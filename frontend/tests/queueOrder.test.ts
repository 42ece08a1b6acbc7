/** The rows of the queue page, moves among one's own jobs, and times of start in words. */
import { describe, expect, it } from "vitest";
import type { ChangePreview, Job, Lane } from "@/api/types";
import { describePreview, describeShift } from "@/features/queue/changeWords";
import { buildRows, listJobs } from "@/features/queue/lanes";
import {
  buildOwnOrder,
  findMoveBack,
  isSameGroup,
  listMoves,
  planDrop,
} from "@/features/queue/ownOrder";
import {
  describeAccuracy,
  formatStart,
  formatStartShort,
  formatTimeOfStart,
  hintStart,
} from "@/lib/startEstimate";

function job(id: string, changes: Partial<Job> = {}): Job {
  return {
    id,
    state: "queued",
    pool: "default",
    project: "lab",
    created_by: "ada",
    priority_class: "normal",
    position: 1,
    ...changes,
  } as Job;
}

const LANES = [
  { priority_class: "interactive", waiting: 0, mine: 0 },
  { priority_class: "urgent", waiting: 1, mine: 0 },
  { priority_class: "normal", waiting: 40, mine: 12 },
  { priority_class: "idle", waiting: 2, mine: 2 },
] as Lane[];

const outline = (jobs: Job[], count: "waiting" | "mine" | null = "waiting") =>
  buildRows(jobs, LANES, count).map((row) =>
    row.kind === "lane"
      ? `${row.priorityClass}${row.hasNoPlace ? " without place" : ""}: ${row.count}`
      : row.job.id,
  );

describe("rows of the queue", () => {
  it("stand below the heading of their class, with its number", () => {
    const jobs = [job("a", { priority_class: "urgent" }), job("b"), job("c")];
    expect(outline(jobs)).toEqual(["urgent: 1", "a", "normal: 40", "b", "c"]);
    expect(outline(jobs, "mine")).toEqual(["urgent: 0", "a", "normal: 12", "b", "c"]);
    expect(outline(jobs, null)).toEqual(["urgent: null", "a", "normal: null", "b", "c"]);
  });

  it("have one heading for each class, also if an assigned job of it starts first", () => {
    const jobs = [
      job("assigned", { priority_class: "idle", position: 1 }),
      job("urgent", { priority_class: "urgent", position: 2 }),
      job("normal", { position: 3 }),
      job("idle", { priority_class: "idle", position: 4 }),
    ];
    expect(outline(jobs)).toEqual([
      "urgent: 1",
      "urgent",
      "normal: 40",
      "normal",
      "idle: 2",
      "assigned",
      "idle",
    ]);
  });

  it("without a place stand last; if none has one, there is no second heading", () => {
    const held = job("held", { position: null });
    expect(outline([job("a"), held, job("b", { position: 2 })])).toEqual([
      "normal: 40",
      "a",
      "b",
      "normal without place: null",
      "held",
    ]);
    expect(outline([held])).toEqual(["normal: 40", "held"]);
  });

  it("number the jobs in the order in which they are shown", () => {
    const jobs = [job("idle", { priority_class: "idle" }), job("b")];
    const rows = buildRows(jobs, LANES, null);
    expect(listJobs(rows).map((one) => one.id)).toEqual(["b", "idle"]);
    expect(rows.flatMap((row) => (row.kind === "job" ? [row.number] : []))).toEqual([0, 1]);
  });
});

describe("moves among one's own jobs", () => {
  const others = job("of bea", { created_by: "bea" });
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => job(id)) as [Job, Job, Job, Job];
  const order = buildOwnOrder([a, others, b, c, job("idle", { priority_class: "idle" }), d]);
  const cut = buildOwnOrder([a, others, b, c, d], true);

  it("stay within person, project, pool and class", () => {
    expect(isSameGroup(a, b)).toBe(true);
    for (const change of [
      { created_by: "bea" },
      { project: "x" },
      { pool: "x" },
      { priority_class: "idle" as const },
    ])
      expect(isSameGroup(a, job("other", change))).toBe(false);
    expect(planDrop(order, a, others, "lower")).toBeNull();
    expect(listMoves(order, others)).toEqual({});
  });

  it("leave out what changes nothing", () => {
    expect(listMoves(order, a)).toEqual({ down: { before: "c" }, end: { before: null } });
    expect(listMoves(order, b)).toEqual({
      front: { before: "a" },
      up: { before: "a" },
      down: { before: "d" },
      end: { before: null },
    });
    expect(listMoves(order, d)).toEqual({ front: { before: "a" }, up: { before: "c" } });
    expect(listMoves(order, job("a", { state: "paused" }))).not.toEqual({});
    expect(listMoves(buildOwnOrder([job("p", { state: "paused" })]), job("p"))).toEqual({});
  });

  it("by dragging depend on the half of the row", () => {
    expect(planDrop(order, d, b, "upper")).toEqual({ before: "b" });
    expect(planDrop(order, d, b, "lower")).toEqual({ before: "c" });
    expect(planDrop(order, a, d, "lower")).toEqual({ before: null });
    expect(planDrop(order, b, a, "lower")).toBeNull();
    expect(planDrop(order, b, c, "upper")).toBeNull();
    expect(planDrop(order, b, b, "upper")).toBeNull();
  });

  it("do not take the last loaded job for the last one", () => {
    expect(listMoves(cut, c)).toEqual({
      front: { before: "a" },
      up: { before: "b" },
      end: { before: null },
    });
    expect(listMoves(cut, d).end).toEqual({ before: null });
    expect(planDrop(cut, a, d, "lower")).toBeNull();
    expect(findMoveBack(cut, d)).toBeNull();
  });

  it("can be taken back", () => {
    expect(findMoveBack(order, b)).toEqual({ before: "c" });
    expect(findMoveBack(order, d)).toEqual({ before: null });
    expect(findMoveBack(order, job("unknown"))).toBeNull();
  });
});

const NOW = new Date(2026, 10, 24, 12, 0).getTime();
const at = (minutes: number) => new Date(NOW + minutes * 60_000).toISOString();
const estimate = (earliest: number, median: number, latest: number) => ({
  made_at: at(0),
  earliest: at(earliest),
  median: at(median),
  latest: at(latest),
  unknown: null,
});
const UNKNOWN = { made_at: null, earliest: null, median: null, latest: null, unknown: "Not yet." };

describe("the estimated start", () => {
  it("is a time of day, with the date of another day and the year of a far one", () => {
    expect(formatTimeOfStart(at(140), NOW)).toBe("14:20");
    expect(formatTimeOfStart(at(2 * 1_440 + 140), NOW)).toBe("Nov 26, 14:20");
    expect(formatTimeOfStart(at(400 * 1_440), NOW)).toMatch(/2027, 12:00$/);
  });

  it("is a sentence and an interval", () => {
    expect(formatStart(estimate(125, 140, 190), NOW)).toBe(
      "starts at about 14:20, between 14:05 and 15:10",
    );
    expect(formatStartShort(estimate(125, 140, 190), NOW)).toBe("14:05 – 15:10");
    expect(formatStart(estimate(140, 140, 140), NOW)).toBe("starts at about 14:20");
    expect(formatStartShort(estimate(140, 140, 140), NOW)).toBe("14:20");
  });

  it("is now within a minute", () => {
    expect(formatStart(estimate(0, 0, 0.5), NOW)).toBe("starts within a minute");
    expect(formatStartShort(estimate(0, 0, 0.5), NOW)).toBe("now");
  });

  it("says why there is none", () => {
    expect(formatStart(UNKNOWN, NOW)).toBe("Not yet.");
    expect(formatStart(null, NOW)).toBe("no estimate of its start yet");
    expect(formatStartShort(UNKNOWN, NOW)).toBeNull();
    expect(hintStart(UNKNOWN)).toBe("Not yet.");
    expect(hintStart(null)).toBe("");
    expect(hintStart(estimate(1, 2, 3))).toContain("Eight of ten jobs");
  });
});

describe("the accuracy of estimates", () => {
  it("is a sentence, or nothing before there are any", () => {
    const found = { starts: 1_200, coverage: 0.81, median_error_seconds: 95 };
    expect(describeAccuracy(found)).toBe(
      "81 % of 1,200 earlier starts lay within their estimate, median error 1 min 35 s",
    );
    expect(describeAccuracy(undefined)).toBeNull();
    expect(describeAccuracy({ starts: 0, coverage: null, median_error_seconds: null })).toBeNull();
  });
});

describe("the preview of a change", () => {
  const preview = (changes: Partial<ChangePreview>): ChangePreview => ({
    jobs: 1,
    jobs_left: 0,
    not_permitted: 0,
    refused: [],
    sentence: "The server's sentence.",
    starts: [
      {
        job_id: "a",
        place: 4,
        new_place: 2,
        start: estimate(180, 185, 190),
        new_start: estimate(135, 140, 145),
      },
    ],
    own_starts: [],
    own: { earlier: 0, later: 3 },
    others: { earlier: 0, later: 0 },
    ...changes,
  });
  const shift = (changes: Partial<ChangePreview["starts"][number]>) => ({
    ...(preview({}).starts[0] as ChangePreview["starts"][number]),
    ...changes,
  });

  it("names both times and the other jobs", () => {
    expect(describePreview(preview({}), NOW)).toBe(
      "Would start at about 14:20 instead of 15:05; 3 other jobs of yours start later.",
    );
    const others = { own: { earlier: 1, later: 0 }, others: { earlier: 0, later: 1 } };
    expect(describePreview(preview({ jobs: 7, ...others }), NOW)).toBe(
      "The first of 7 jobs would start at about 14:20 instead of 15:05; 1 job of other people " +
        "starts later, 1 other job of yours starts earlier.",
    );
  });

  it("says when nothing changes, when it starts at once, and when it had no estimate", () => {
    const own = { earlier: 0, later: 0 };
    const same = [shift({ new_start: estimate(180, 185, 190) })];
    expect(describePreview(preview({ starts: same, own }), NOW)).toBe(
      "Would start at about 15:05, as it does now.",
    );
    const soon = [shift({ new_start: estimate(0, 0.3, 0.5) })];
    expect(describePreview(preview({ starts: soon, own }), NOW)).toBe(
      "Would start within a minute instead of 15:05.",
    );
    const first = [shift({ start: UNKNOWN })];
    expect(describePreview(preview({ starts: first, own }), NOW)).toBe(
      "Would start at about 14:20.",
    );
  });

  it("leaves to the server what has no time", () => {
    const starts = [shift({ new_start: UNKNOWN })];
    expect(describePreview(preview({ starts }), NOW)).toBe("The server's sentence.");
    expect(describePreview(preview({ starts: [] }), NOW)).toBe("The server's sentence.");
  });

  it("gives places and times of single jobs", () => {
    expect(describeShift(shift({}), NOW)).toBe("place 4 → 2, start 15:05 → 14:20");
    expect(describeShift(shift({ new_place: null, new_start: UNKNOWN }), NOW)).toBe(
      "place 4 → none, start 15:05 → unknown",
    );
    expect(describeShift(shift({ start: UNKNOWN, new_start: UNKNOWN }), NOW)).toBe("place 4 → 2");
  });
});
