/** The state of the page of runs: its URL, its view, filters as terms, groups. */
import { describe, expect, it } from "vitest";
import type { Run, RunGroup, RunsPageState } from "@/api/types";
import { describeKey, listAskedKeys, nameKey, writeSeriesKey } from "@/features/runs/columnKeys";
import {
  chooseGroupSort,
  chooseMetric,
  chooseRunColor,
  identifyGroup,
} from "@/features/runs/groupKeys";
import { listGroupItems } from "@/features/runs/runItems";
import {
  DEFAULTS,
  type RunsSearch,
  type RunsState,
  readRunsSearch,
  readRunsState,
  writeRunsState,
} from "@/features/runs/search";
import { replaceRun } from "@/features/runs/useLiveRuns";
import { chooseWidth, orderColumns } from "@/features/runs/useRunColumns";
import { moveKey } from "@/features/runs/useRunsState";
import { isChanged, readBoardSettings, readView, writeView } from "@/features/runs/viewState";
import { addTerm, completeFilter, joinFilters, splitTerms } from "@/lib/filterTerms";
import { addKey, readOrder, removeKey, writeOrder } from "@/lib/sortOrder";

const STATE: RunsState = {
  filter: "agent:dqn",
  sort: "-evaluation/mean.best",
  columns: ["name", "agent.lr", "evaluation/mean.best"],
  pinned: ["name", "agent.lr"],
  widths: { name: 240, "evaluation/mean.best": 180 },
  groupBy: ["agent", "agent.lr"],
  show: "table",
  split: 35,
};

/** What the router reads of the parameters that are written. */
function roundTrip(state: RunsState, base: RunsState): RunsState {
  const written = Object.entries(writeRunsState(state, base)).filter(
    ([, one]) => one !== undefined,
  );
  return readRunsState(readRunsSearch(Object.fromEntries(written)), base);
}

describe("the URL of the page of runs", () => {
  it("holds the whole state, and nothing for the defaults", () => {
    expect(roundTrip(STATE, DEFAULTS)).toEqual(STATE);
    expect(Object.values(writeRunsState(DEFAULTS))).toEqual(Array(8).fill(undefined));
  });

  it("holds what differs from the view, also where that is the default", () => {
    expect(Object.values(writeRunsState(STATE, STATE))).toEqual(Array(8).fill(undefined));
    expect(roundTrip(DEFAULTS, STATE)).toEqual(DEFAULTS);
    const emptied = { ...STATE, columns: [], pinned: [], groupBy: [], widths: {}, filter: "" };
    expect(roundTrip(emptied, STATE)).toEqual(emptied);
  });

  it("survives values that nobody wrote", () => {
    const bad = { widths: "name,:3,a:x,b:-4,c:99999", split: "900", columns: ",,", show: "x" };
    const state = readRunsState(readRunsSearch(bad) as RunsSearch);
    expect(state.widths).toEqual({ c: 900 });
    expect([state.split, state.show]).toEqual([50, "both"]);
    expect(state.columns).toEqual([]);
  });
});

describe("a saved view", () => {
  const board = { smooth: 0.5, x: "update", pins: ["loss/td"] };

  it("is what the page shows", () => {
    const kept = writeView(STATE, board) as RunsPageState;
    expect(readView(kept)).toEqual(STATE);
    expect(kept.board).toEqual(board);
  });

  it("is changed by parameters beside it, in any order of the board's", () => {
    expect(
      isChanged({ view: "viw_1", smooth: 0.5, x: "update" } as RunsSearch, {
        x: "update",
        smooth: 0.5,
      }),
    ).toBe(false);
    expect(isChanged({ view: "viw_1", filter: "agent:ppo" }, {})).toBe(true);
    expect(isChanged({ view: "viw_1", large: "loss/td" }, {})).toBe(false);
    expect(readBoardSettings({ large: "loss/td", smooth: 0.5 })).toEqual({ smooth: 0.5 });
    expect(isChanged({ view: "viw_1" }, { smooth: 0.5 })).toBe(true);
  });
});

describe("columns", () => {
  it("are described by their keys", () => {
    expect(describeKey("evaluation/mean.best")).toMatchObject({
      kind: "series",
      statistic: "best",
    });
    expect(describeKey("series.loss.mean10")).toMatchObject({ title: "loss", statistic: "mean10" });
    expect(describeKey("agent.lr")).toMatchObject({ kind: "member", isGroupable: true });
    expect(nameKey("loss/td")).toBe("loss/td, last");
    expect([writeSeriesKey("loss", "best"), writeSeriesKey("a/b", "count")]).toEqual([
      "series.loss.best",
      "a/b.count",
    ]);
    expect(listAskedKeys(["name", "seed", "agent.lr", "state"])).toEqual(["name", "agent.lr"]);
  });

  it("come pinned first; groups show name, state and metric first, and nothing that they share", () => {
    const columns = ["seed", "agent", "name"];
    expect(orderColumns({ ...DEFAULTS, columns, pinned: ["name"] })).toEqual([
      "name",
      "seed",
      "agent",
    ]);
    expect(orderColumns({ ...DEFAULTS, columns: ["seed", "agent"], groupBy: ["agent"] })).toEqual([
      "name",
      "evaluation/mean.last",
      "seed",
    ]);
    const grouped = { ...DEFAULTS, groupBy: ["agent"], sort: "-loss/td.best" };
    expect(orderColumns(grouped).slice(0, 4)).toEqual(["name", "state", "loss/td.best", "env"]);
  });

  it("are wider where they sort, by an arrow and by a place among several", () => {
    const alone = chooseWidth("agent", { ...DEFAULTS, sort: "-created" });
    const first = chooseWidth("agent", { ...DEFAULTS, sort: "agent" });
    const amongTwo = chooseWidth("agent", { ...DEFAULTS, sort: "-created,agent" });
    expect(first).toBeGreaterThan(alone);
    expect(amongTwo).toBeGreaterThan(first);
  });

  it("move by one place, and not beyond the ends", () => {
    expect(moveKey(["a", "b", "c"], "b", -1)).toEqual(["b", "a", "c"]);
    expect(moveKey(["a", "b", "c"], "c", 1)).toEqual(["a", "b", "c"]);
  });
});

describe("the order", () => {
  it("has keys in the order in which they were added, four at most", () => {
    const order = readOrder("agent,-evaluation/mean.best");
    expect(order).toEqual([
      { id: "agent", isDescending: false },
      { id: "evaluation/mean.best", isDescending: true },
    ]);
    expect(writeOrder(addKey(order, { id: "agent", isDescending: true }))).toBe(
      "-agent,-evaluation/mean.best",
    );
    const most = readOrder("a,b,c,d");
    expect(writeOrder(addKey(most, { id: "e", isDescending: true }))).toBe("a,b,c,-e");
    expect(writeOrder(removeKey(order, "agent"))).toBe("-evaluation/mean.best");
    expect(chooseMetric("-loss/td.last,agent")).toBe("loss/td.last");
    expect(chooseGroupSort("-agent,loss/td", ["agent"])).toBe("-name");
  });
});

describe("groups", () => {
  const group = (by: Record<string, unknown>) => ({ by, name: "", runs: 2 }) as unknown as RunGroup;

  it("show the mean of the key that sorts, and are sorted by it", () => {
    expect(chooseMetric("-loss/td.last")).toBe("loss/td.last");
    expect(chooseMetric("created")).toBe("evaluation/mean.last");
    expect(chooseGroupSort("loss/td.last", ["agent"])).toBe("mean");
    expect(chooseGroupSort("-agent", ["agent"])).toBe("-name");
    expect(chooseGroupSort("-created", ["agent"])).toBe("-mean");
  });

  it("have a colour of their own; seeds of a group share its hue", () => {
    const run = (values: object, seed: number) =>
      ({ id: `run_${seed}`, experiment_id: "e", seed, replicate: 0, values }) as unknown as Run;
    const [a, b, c] = [
      run({ agent: "dqn" }, 0),
      run({ agent: "dqn" }, 1),
      run({ agent: "ppo" }, 0),
    ].map((one) => chooseRunColor(one, ["agent"], "light"));
    expect(new Set([a, b, c]).size).toBe(3);
    expect(identifyGroup({ experiment: "e-1" })).toBe("e-1");
    expect(identifyGroup({ agent: "e-1" })).not.toBe("e-1");
  });

  it("unfold to their runs, with a note where not all are there", () => {
    const groups = [group({ agent: "dqn" }), group({ agent: "ppo" })];
    const id = `group ${identifyGroup({ agent: "ppo" })}`;
    const runs = [{ id: "run_1" }, { id: "run_2" }] as Run[];
    const opened = new Map([[id, { runs, isPending: false, problem: null, hasMore: true }]]);
    expect(listGroupItems(groups, opened).map((item) => item.kind)).toEqual([
      "group",
      "group",
      "run",
      "run",
      "note",
    ]);
  });
});

describe("an event of a run", () => {
  const page = (...ids: string[]) => ({
    items: ids.map((id) => ({ id, state: "queued", values: { agent: "dqn" } }) as unknown as Run),
    next_cursor: null,
  });
  const changed = { id: "run_b", state: "running", values: {} } as unknown as Run;

  it("replaces its row and keeps the values of the columns", () => {
    const lists = { pages: [page("run_a"), page("run_b")], pageParams: ["", "x"] };
    const found = replaceRun(lists, changed) as typeof lists;
    expect(found.pages[1]?.items[0]).toMatchObject({ state: "running", values: { agent: "dqn" } });
    expect(found.pages[0]).toBe(lists.pages[0]);
    const members = page("run_b");
    expect(replaceRun(members, changed)).toMatchObject({ items: [{ state: "running" }] });
  });

  it("leaves lists alone that lack the run", () => {
    const lists = { pages: [page("run_a")], pageParams: [""] };
    expect(replaceRun(lists, changed)).toBe(lists);
    expect(replaceRun(undefined, changed)).toBeUndefined();
  });
});

describe("a filter", () => {
  it("is split into its terms at blanks outside of quotes", () => {
    const text = 'agent:ppo  -name:"a \\"b\\" c" not state:running,queued "two words" x:"open end';
    expect(splitTerms(text)).toEqual([
      "agent:ppo",
      '-name:"a \\"b\\" c"',
      "not state:running,queued",
      '"two words"',
      'x:"open end',
    ]);
    expect(splitTerms("  ")).toEqual([]);
    expect(addTerm("a:1 b:2", "b:2")).toBe("a:1 b:2");
    expect(addTerm("a:1", "b:2")).toBe("a:1 b:2");
    expect(joinFilters("", "a:1", " ", "b:2")).toBe("a:1 b:2");
  });

  it("is completed with fields, members, series and choices", () => {
    const keys = {
      fields: [
        { name: "agent", kind: "text", choices: [] },
        { name: "state", kind: "choice", choices: ["running", "queued"] },
        { name: "seed", kind: "number", choices: [] },
      ],
      members: ["agent.lr"],
      series: ["evaluation/mean", "loss"],
      thresholds: ["solved"],
    };
    expect(completeFilter("seed>1 -agen", keys)).toEqual(["seed>1 -agent:", "seed>1 -agent.lr:"]);
    expect(completeFilter("mea", keys)).toEqual(["evaluation/mean>"]);
    expect(completeFilter("solv", keys)).toEqual(["reached.solved<"]);
    expect(completeFilter("los", keys)).toEqual(["series.loss>"]);
    expect(completeFilter("state:running,q", keys)).toEqual(["state:running,queued"]);
    expect(completeFilter("see", keys)).toEqual(["seed>"]);
    expect([completeFilter("", keys), completeFilter("agent:", keys)]).toEqual([[], []]);
  });
});
