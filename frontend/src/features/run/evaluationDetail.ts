/** What belongs to one evaluation: its episodes, its videos and the snapshot that it evaluated. */
import type { Evaluation, Snapshot } from "@/api/types";
import { toNumber } from "@/lib/format";
import type { Video } from "./videos";

export interface EvaluatedEpisode {
  /** Number in its evaluation, from 0. */
  episode: number;
  episodeReturn: number;
  video: Video | null;
}

/** The evaluation's episodes in their order, each with its video. */
export function listEpisodes(evaluation: Evaluation, videos: readonly Video[]): EvaluatedEpisode[] {
  const own = listVideosOf(evaluation, videos);
  return evaluation.returns.map((value, episode) => ({
    episode,
    episodeReturn: toNumber(value),
    video: own.find((one) => one.episode === episode) ?? null,
  }));
}

/** Videos of an evaluation: the training films its own evaluations, and no others. */
export function listVideosOf(evaluation: Evaluation, videos: readonly Video[]): Video[] {
  const isOfTraining = evaluation.source === "evaluation" && evaluation.snapshot_id === null;
  if (!isOfTraining || evaluation.superseded) return [];
  return videos
    .filter((one) => one.envStep === evaluation.env_step)
    .sort((a, b) => a.episode - b.episode);
}

/** The snapshot that was evaluated, or that the training wrote at the same place. */
export function findSnapshot(
  evaluation: Evaluation,
  snapshots: readonly Snapshot[],
): Snapshot | null {
  if (evaluation.snapshot_id !== null)
    return snapshots.find((one) => one.id === evaluation.snapshot_id) ?? null;
  const same = snapshots.filter(
    (one) =>
      one.env_step === evaluation.env_step &&
      one.update === evaluation.update &&
      one.superseded === evaluation.superseded,
  );
  return same.find((one) => one.state === "verified") ?? same[0] ?? null;
}

/** Other evaluations of the same state of the training. */
export function listSiblings(
  evaluation: Evaluation,
  evaluations: readonly Evaluation[],
): Evaluation[] {
  return evaluations.filter(
    (one) => one.env_step === evaluation.env_step && one.update === evaluation.update,
  );
}
