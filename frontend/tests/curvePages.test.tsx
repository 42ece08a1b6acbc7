/** What the pages of a run and of an experiment make of evaluations, episodes and scores. */
import { describe, expect, it } from "vitest";
import { readEpisodes } from "@/api/episodes";
import type { Evaluation, ExperimentDetail, Run, Snapshot, StatisticsResult } from "@/api/types";
import { buildScoresQuery, selectScores } from "@/features/experiment/finalScores";
import { buildMatrixColumns, listMatrixStates } from "@/features/experiment/seedMatrix";
import { findSnapshot, listEpisodes, listSiblings } from "@/features/run/evaluationDetail";
import type { Video } from "@/features/run/videos";
import { parseCsv } from "@/lib/csv";
import { nameExperiments, shortenExperimentIds } from "@/lib/experimentNames";
import { addPoints, createEmptyCurve } from "@/live/curve";
import { SeriesRing } from "@/live/seriesRing";

const evaluation = (changes: Partial<Evaluation> = {}): Evaluation =>
  ({
    id: "evl_1",
    env_step: 200,
    update: 5,
    source: "evaluation",
    snapshot_id: null,
    superseded: false,
    returns: [1, "NaN", 3],
    ...changes,
  }) as unknown as Evaluation;
const video = (envStep: number, episode: number) =>
  ({ id: `art_${envStep}_${episode}`, envStep, episode }) as Video;
const snapshot = (id: string, changes: Partial<Snapshot> = {}) =>
  ({ id, env_step: 200, update: 5, superseded: false, state: "verified", ...changes }) as Snapshot;

describe("an evaluation", () => {
  it("has the videos of its own episodes", () => {
    const videos = [video(100, 1), video(200, 1)];
    const episodes = listEpisodes(evaluation(), videos);
    expect(episodes.map((one) => one.video?.id)).toEqual([undefined, "art_200_1", undefined]);
    expect(episodes[1]?.episodeReturn).toBeNaN();
    for (const other of [
      { snapshot_id: "snp_1" },
      { superseded: true },
      { source: "test" as const },
    ])
      expect(listEpisodes(evaluation(other), videos).some((one) => one.video)).toBe(false);
  });

  it("has the snapshot that it evaluated, or that of the same step", () => {
    const snapshots = [
      snapshot("snp_old", { superseded: true }),
      snapshot("snp_uploading", { state: "uploading" }),
      snapshot("snp_same"),
      snapshot("snp_named", { env_step: 900 }),
    ];
    expect(findSnapshot(evaluation(), snapshots)?.id).toBe("snp_same");
    expect(findSnapshot(evaluation({ snapshot_id: "snp_named" }), snapshots)?.id).toBe("snp_named");
    expect(findSnapshot(evaluation({ snapshot_id: "snp_gone" }), snapshots)).toBeNull();
    expect(findSnapshot(evaluation({ update: 6 }), snapshots)).toBeNull();
  });

  it("is shown beside others of the same state", () => {
    const all = [evaluation(), evaluation({ id: "evl_2" }), evaluation({ update: 9 })];
    expect(listSiblings(evaluation(), all)).toHaveLength(2);
  });
});

describe("episodes", () => {
  it("are read from CSV, the newest first", () => {
    const text =
      "episode,env_index,env_step,wall,episode_return,episode_length,terminated\r\n" +
      "1,0,10,1.5,9.5,10,true\r\n2,0,25,2.5,nan,15,False\r\n";
    expect(
      readEpisodes(text).map((one) => [one.episode, one.episode_length, one.terminated]),
    ).toEqual([
      [2, 15, false],
      [1, 10, true],
    ]);
    expect(readEpisodes(text)[1]?.episode_return).toBe(9.5);
  });

  it("may have quoted cells and an empty last one", () => {
    expect(parseCsv('a,b\n"x, ""y""",\nz,2')).toEqual([
      ["a", "b"],
      ['x, "y"', ""],
      ["z", "2"],
    ]);
    expect(() => parseCsv('"open')).toThrow("no end");
  });
});

it("points have a place on the relative axis once the run's first point is known", () => {
  const ring = new SeriesRing();
  const column = [0, 0];
  const counters = { env_step: column, update: column, episode: column };
  ring.push({ fence: 1, seq: 1, ...counters, wall: [1_000, 1_007.5], value: [1, 2] });
  const view = { axis: "relative", superseded: false } as const;
  const curve = createEmptyCurve();
  addPoints(curve, ring, view, () => false);
  expect(curve.x).toEqual([]);
  addPoints(curve, ring, { ...view, origin: 1_000 }, () => false);
  expect(curve.x).toEqual([0, 7.5]);
});

const run = (seed: number, state: Run["state"] = "succeeded") =>
  ({ id: `run_${seed}`, seed, state }) as Run;

describe("the matrix of seeds", () => {
  it("has a cell for every seed between and after those that ran", () => {
    const columns = buildMatrixColumns([run(0), run(3, "failed")]);
    expect(columns.map((one) => [one.seed, one.run?.id ?? null])).toEqual([
      [0, "run_0"],
      [1, null],
      [2, null],
      [3, "run_3"],
      [4, null],
      [5, null],
    ]);
    expect(listMatrixStates([run(0, "queued"), run(3, "failed")])).toEqual([
      "queued",
      "succeeded",
      "failed",
    ]);
    expect(buildMatrixColumns([]).map((one) => one.seed)).toEqual([0, 1]);
  });

  it("does not list a thousand seeds that are missing", () => {
    expect(buildMatrixColumns([run(100_000)]).length).toBeLessThan(60);
  });
});

describe("final scores", () => {
  const experiment = { id: "own", project: "lab", env: 'Weird "env"', kind: "rl" };
  const group = (name: string, value: number, scores: number[]) => ({
    name,
    by: { experiment: name },
    scores: scores.map((score) => ({ score })),
    aggregates: { iqm: { value, low: null, high: null } },
  });

  it("are compared with all runs in the same environment", () => {
    const query = buildScoresQuery(experiment as ExperimentDetail, [run(1)], 3, true);
    expect(query.filter).toBe('project:lab env:"Weird \\"env\\"" evaluation/mean.count>=3');
    expect(query.runs).toEqual(["run_1"]);
    expect(
      buildScoresQuery(experiment as ExperimentDetail, [run(1)], 3, false).filter,
    ).toBeUndefined();
  });

  it("show the best rivals on one scale with the own ones", () => {
    const groups = [
      group("a", 5, [4, 6]),
      group("own", 3, [1, 5]),
      group("b", 9, [9]),
      group("c", 0, []),
    ];
    const shown = selectScores({ groups } as unknown as StatisticsResult, "own");
    expect(shown.own?.name).toBe("own");
    expect(shown.rivals.map((one) => one.name)).toEqual(["b", "a"]);
    expect(shown.domain).toEqual([1, 9]);
  });

  it("name experiments without their hashes, and with them where names are the same", () => {
    const ids = ["dqn-a-1f", "ppo-2e", "ppo-3d"];
    const names = shortenExperimentIds(ids);
    expect([...names.values()]).toEqual(["dqn-a", "ppo-2e", "ppo-3d"]);
    const sentence = "experiment=dqn-a-1f: the difference to experiment=ppo-2e is 3.";
    expect(nameExperiments(sentence, names)).toBe("dqn-a: the difference to ppo-2e is 3.");
  });
});
