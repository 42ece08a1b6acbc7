import { describe, expect, it } from "vitest";
import type { Artifact, Evaluation } from "@/api/types";
import { listVideos } from "@/features/run/videos";

function file(name: string, envStep: number, createdAt: string, stored = true): Artifact {
  return {
    id: `art_${name}_${createdAt}`,
    name,
    env_step: envStep,
    created_at: createdAt,
    stored,
  } as Artifact;
}

function evaluation(envStep: number, returns: number[], superseded = false): Evaluation {
  return { env_step: envStep, returns, superseded, snapshot_id: null } as unknown as Evaluation;
}

describe("videosOf", () => {
  it("joins video, poster and the episode's return, newest first", () => {
    const files = [
      file("000000000100-episode-1.mp4", 100, "1"),
      file("000000000100-episode-1.jpg", 100, "1"),
      file("000000000200-episode-0.mp4", 200, "2"),
    ];
    const found = listVideos(files, [evaluation(100, [3, 4], true), evaluation(100, [5, 9])]);
    expect(found.map((one) => [one.envStep, one.episode, one.episodeReturn])).toEqual([
      [200, 0, undefined],
      [100, 1, 9],
    ]);
    expect(found[1]?.poster).toBe("/api/v1/artifacts/art_000000000100-episode-1.jpg_1/content");
    expect(found[0]?.poster).toBeUndefined();
  });

  it("shows the latest video of an episode, and no file that is not stored yet", () => {
    const files = [
      file("000000000100-episode-1.mp4", 100, "5"),
      file("000000000100-episode-1.mp4", 100, "3"),
      file("000000000300-episode-0.mp4", 300, "6", false),
      file("notes.txt", 0, "1"),
    ];
    expect(listVideos(files, []).map((one) => one.id)).toEqual([
      "art_000000000100-episode-1.mp4_5",
    ]);
  });
});
