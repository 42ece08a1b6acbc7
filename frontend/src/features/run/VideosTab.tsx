import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { evaluationsQuery, videosQuery } from "@/api/queries";
import type { RunDetail } from "@/api/types";
import { count, value } from "@/lib/format";
import { Empty, Failure } from "@/ui/Empty";
import { Panel } from "@/ui/Page";
import classes from "./VideosTab.module.css";
import { type Video, videosOf } from "./videos";

const HOOK = "hooks:\n  - name: video\n    every_evaluations: 5\n    episode: best";

/** Filmed episodes, newest first. */
export function VideosTab({ run }: { run: RunDetail }) {
  const files = useQuery(videosQuery(run.id));
  const evaluations = useQuery(evaluationsQuery(run.id));
  const videos = useMemo(() => videosOf(files.data ?? [], evaluations.data ?? []), [files.data, evaluations.data]);
  if (files.isPending) return <Skeleton height={240} radius={10} />;
  if (files.isError && videos.length === 0)
    return <Failure error={files.error as ApiError} retry={() => void files.refetch()} />;
  if (videos.length === 0) {
    return (
      <Panel flush>
        <Empty title="No video yet" command={HOOK}>
          The hook video films an episode of an evaluation, played again from the seed that it was counted with. It
          needs an environment that renders pictures.
        </Empty>
      </Panel>
    );
  }
  return (
    <ul className={classes.grid} aria-label="Videos">
      {videos.map((video) => (
        <Card key={video.id} video={video} />
      ))}
    </ul>
  );
}

function Card({ video }: { video: Video }) {
  return (
    <li className={classes.card}>
      {/* biome-ignore lint/a11y/useMediaCaption: an environment's picture has no sound */}
      <video
        className={classes.video}
        src={video.video}
        poster={video.poster}
        preload="none"
        controls
        loop
        playsInline
        aria-label={`Episode ${video.episode} at env step ${video.envStep}`}
      />
      <div className={classes.caption}>
        <span>
          env step <b>{count(video.envStep)}</b>
        </span>
        {video.episodeReturn !== undefined && (
          <span>
            return <b>{value(video.episodeReturn)}</b>
          </span>
        )}
      </div>
    </li>
  );
}
