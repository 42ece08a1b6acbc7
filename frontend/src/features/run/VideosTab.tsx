import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { ApiError } from "@/api/client";
import { evaluationsQuery, videosQuery } from "@/api/queries";
import type { RunDetail } from "@/api/types";
import { formatCount, formatValue } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { IconPlayerPlay } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./VideosTab.module.css";
import { listVideos, type Video } from "./videos";

const HOOK = "hooks:\n  - name: video\n    every_evaluations: 5\n    episode: best";

/** Recorded episodes, newest first. */
export function VideosTab({ run }: { run: RunDetail }) {
  const files = useQuery(videosQuery(run.id));
  const evaluations = useQuery(evaluationsQuery(run.id));
  const videos = useMemo(
    () => listVideos(files.data ?? [], evaluations.data ?? []),
    [files.data, evaluations.data],
  );
  const problem = findQueryError(files);
  if (files.isPending && problem === null) return <Skeleton height={240} radius={10} />;
  if (files.data === undefined)
    return <Failure error={problem as ApiError} retry={() => void files.refetch()} />;
  if (videos.length === 0) {
    return (
      <Panel flush>
        <EmptyState title="No video yet" command={HOOK}>
          The hook video films an episode of an evaluation, played again from the seed that it was
          counted with. It needs an environment that renders pictures.
        </EmptyState>
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
  const [started, setStarted] = useState(false);
  const step = video.envStep === null ? "" : ` at env step ${formatCount(video.envStep)}`;
  const title = `Episode ${video.episode}${step}`;
  return (
    <li className={classes.card}>
      {started ? (
        // biome-ignore lint/a11y/useMediaCaption: an environment's picture has no sound
        <video
          className={classes.picture}
          src={video.video}
          aria-label={title}
          controls
          autoPlay
          loop
          playsInline
        />
      ) : (
        <button
          type="button"
          className={classes.start}
          onClick={() => setStarted(true)}
          aria-label={`Play ${title}`}
        >
          {video.poster ? (
            <img className={classes.picture} src={video.poster} alt="" loading="lazy" />
          ) : (
            <span className={classes.picture} />
          )}
          <span className={classes.play}>
            <IconPlayerPlay size={18} />
          </span>
        </button>
      )}
      <div className={classes.caption}>
        <span>
          env step <b>{formatCount(video.envStep)}</b>
        </span>
        {video.episodeReturn !== undefined && (
          <span>
            return <b>{formatValue(video.episodeReturn)}</b>
          </span>
        )}
      </div>
    </li>
  );
}
