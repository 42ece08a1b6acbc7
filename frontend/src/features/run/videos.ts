/** The recorded episodes of a run, read from its artifacts. */
import { contentAddress } from "@/api/queries";
import type { Artifact, Evaluation } from "@/api/types";
import { toNumber } from "@/lib/format";

export interface Video {
  id: string;
  /** `null` where the artifact has none. */
  envStep: number | null;
  /** Number in its evaluation. */
  episode: number;
  video: string;
  poster: string | undefined;
  episodeReturn: number | undefined;
}

const NAME = /^(.+-episode-(\d+))\.(mp4|jpg)$/;

/**
 * Returns videos, the newest first; of an episode that was recorded twice, only the latest video.
 */
export function listVideos(
  artifacts: readonly Artifact[],
  evaluations: readonly Evaluation[],
): Video[] {
  const files = new Map<string, Partial<Record<string, Artifact>>>();
  const byTime = [...artifacts].sort((a, b) => a.created_at.localeCompare(b.created_at));
  for (const artifact of byTime) {
    const match = NAME.exec(artifact.name);
    if (!match || !artifact.stored) continue;
    const stem = match[1] as string;
    files.set(stem, { ...files.get(stem), [match[3] as string]: artifact });
  }
  const found: Video[] = [];
  for (const [stem, { mp4, jpg }] of files) {
    if (!mp4) continue;
    const envStep = mp4.env_step ?? null;
    const episode = Number(stem.slice(stem.lastIndexOf("-") + 1));
    const of = evaluations.find(
      (one) => one.env_step === envStep && !one.superseded && !one.snapshot_id,
    );
    const value = of?.returns[episode];
    found.push({
      id: mp4.id,
      envStep,
      episode,
      video: contentAddress(mp4.id),
      poster: jpg && contentAddress(jpg.id),
      episodeReturn: value === undefined ? undefined : toNumber(value),
    });
  }
  return found.sort((a, b) => (b.envStep ?? -1) - (a.envStep ?? -1));
}
