import { describe, expect, it, vi } from "vitest";
import { splitIntoPieces } from "@/lib/ansi";
import { chooseGroupColor, chooseMemberColor } from "@/lib/color";
import {
  formatAge,
  formatBytes,
  formatCompact,
  formatCount,
  formatDuration,
  formatScore,
  formatSpread,
  formatValue,
  splitExperimentId,
  toNumber,
} from "@/lib/format";
import { diff, lines, onlyChanges } from "@/lib/jsonDiff";
import { smooth } from "@/lib/movingAverage";
import { flag, number, numbers, text } from "@/lib/search";
import { handleKey, registerShortcuts } from "@/lib/shortcuts";

describe("format", () => {
  it.each([
    [482.31, 12.1, "482"],
    [482.31, 1.2, "482.3"],
    [497.65, 0.26, "497.65"],
    [-3.4, 120, "−3"],
  ])("prints %d with spread %d in the digits the spread allows", (mean, spread, shown) => {
    expect(formatScore(mean, spread)).toBe(shown);
  });

  it("writes a spread in two significant digits, also a round one", () => {
    expect([3, 2.96, 210, 0.0341, 0].map(formatSpread)).toEqual([
      "3.0",
      "3.0",
      "210",
      "0.034",
      "0",
    ]);
    expect([1e-9, "NaN", null].map(formatSpread)).toEqual(["1.00e-9", "NaN", "–"]);
  });

  it("names non-finite and missing values", () => {
    expect([
      formatValue("NaN"),
      formatValue("Infinity"),
      formatValue("-Infinity"),
      formatValue(null),
    ]).toEqual(["NaN", "∞", "−∞", "–"]);
    expect(toNumber("-Infinity")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("shortens counts, times and sizes", () => {
    expect([
      formatCount(150_000),
      formatCompact(150_000),
      formatCompact(1_250_000),
      formatCompact(9_999),
    ]).toEqual(["150,000", "150k", "1.25M", "9999"]);
    expect([formatDuration(42), formatDuration(185), formatDuration(8040)]).toEqual([
      "42 s",
      "3 min 05 s",
      "2 h 14 min",
    ]);
    expect(formatBytes(4_812_331)).toBe("4.6 MiB");
    expect(formatAge("2026-11-21T10:00:00Z", Date.parse("2026-11-21T12:30:00Z"))).toBe("2 h ago");
    expect(splitExperimentId("cartpole-dqn-20f974013fd5091b")).toEqual({
      slug: "cartpole-dqn",
      hash: "20f974013fd5091b",
    });
  });
});

describe("smooth", () => {
  it("is unbiased at the start, keeps gaps, and does not change a constant", () => {
    expect(smooth([5, 5, 5], 0.9).map((y) => Number(y?.toFixed(9)))).toEqual([5, 5, 5]);
    expect(smooth([1, null, Number.NaN, 1], 0.5)).toEqual([1, null, null, 1]);
    expect(smooth([1, 2, 3], 0)).toEqual([1, 2, 3]);
  });

  it("equals a debiased average computed by hand", () => {
    expect(smooth([1, 3], 0.5)[1]).toBeCloseTo((0.5 * 0.5 * 1 + 0.5 * 3) / 0.75, 12);
  });
});

describe("tree", () => {
  const mine = {
    agent: { name: "dqn", learning_rate: 0.001, hidden_sizes: [64, 64] },
    stop: { success_score: 475 },
  };
  const other = {
    agent: { name: "dqn", learning_rate: 0.0003, gamma: 0.99 },
    stop: { success_score: 475 },
  };

  it("shows a document line by line", () => {
    expect(lines(mine).map((line) => [line.pointer, line.text])).toEqual([
      ["/agent", null],
      ["/agent/name", "dqn"],
      ["/agent/learning_rate", "0.001"],
      ["/agent/hidden_sizes", "64 · 64"],
      ["/stop", null],
      ["/stop/success_score", "475"],
    ]);
  });

  it("marks changed, added and removed lines, and keeps the branches above them", () => {
    const changes = onlyChanges(diff(mine, other));
    expect(changes.map((line) => [line.pointer, line.status, line.other])).toEqual([
      ["/agent", "same", null],
      ["/agent/learning_rate", "changed", "0.0003"],
      ["/agent/gamma", "removed", "0.99"],
      ["/agent/hidden_sizes", "added", null],
    ]);
  });
});

describe("values of a definition that look alike", () => {
  it.each([
    [null, "none"],
    [1, "1"],
    [true, "true"],
  ])("%j and %j differ", (one, other) => {
    expect(diff({ a: one }, { a: other }).map((line) => line.status)).toEqual(["changed"]);
  });
});

describe("search", () => {
  it("leaves out values of a wrong type", () => {
    const search = { smooth: "2", start: "abc", q: "loss", hide: [1, "x", 3], archived: "true" };
    expect(number(search, "smooth", 0, 0.99)).toBeUndefined();
    expect(number(search, "start")).toBeUndefined();
    expect([text(search, "q"), numbers(search, "hide"), flag(search, "archived")]).toEqual([
      "loss",
      [1, 3],
      true,
    ]);
  });
});

describe("ansi", () => {
  it("turns colours into pieces and drops every other escape", () => {
    expect(splitIntoPieces("a\u001b[31;1mred\u001b[0m\u001b[2Kb")).toEqual([
      { text: "a", color: null, bold: false },
      { text: "red", color: "red", bold: true },
      { text: "b", color: null, bold: false },
    ]);
  });

  it("ends a colour at the next one, and reads a palette colour as one colour", () => {
    const line = "\u001b[91ma\u001b[37mb\u001b[0m\u001b[38;5;31mc\u001b]0;title\u0007d";
    expect(splitIntoPieces(line).map((piece) => [piece.text, piece.color])).toEqual([
      ["a", "red"],
      ["b", "white"],
      ["cd", "palette-31"],
    ]);
  });
});

describe("colour", () => {
  it("is the same for a group everywhere and differs between its members", () => {
    expect(chooseGroupColor("a-1", "light")).toBe(chooseGroupColor("a-1", "light"));
    const members = Array.from({ length: 5 }, (_, i) => chooseMemberColor("a-1", i, 5, "light"));
    expect(new Set(members).size).toBe(5);
    for (const color of members) expect(color).toMatch(/^#[0-9a-f]{6}$/);
  });
});

describe("shortcuts", () => {
  const press = (key: string, now = 0, init: KeyboardEventInit = {}) =>
    handleKey(Object.assign(new KeyboardEvent("keydown", { key, ...init }), {}), now);

  it("runs single keys and sequences, and not while a modifier is held", () => {
    const [go, down] = [vi.fn(), vi.fn()];
    const stop = registerShortcuts([
      { keys: "g e", what: "", run: go },
      { keys: "j", what: "", run: down },
    ]);
    press("g", 0);
    press("e", 100);
    press("g", 5_000);
    press("e", 9_000);
    press("j", 9_100);
    press("j", 9_200, { ctrlKey: true });
    stop();
    press("j", 9_300);
    expect(go).toHaveBeenCalledTimes(1);
    expect(down).toHaveBeenCalledTimes(1);
  });
});
