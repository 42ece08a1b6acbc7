import { Drawer, SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { evaluationsQuery, snapshotsQuery, videosQuery } from "@/api/queries";
import type { Evaluation, RunDetail } from "@/api/types";
import {
  formatCount,
  formatMoment,
  formatPlural,
  formatScore,
  formatSpread,
  formatValue,
} from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { IconPlayerPlay } from "@/ui/icons";
import { LinkButton } from "@/ui/LinkButton";
import classes from "./EvaluationDrawer.module.css";
import { EvaluationSnapshot } from "./EvaluationSnapshot";
import {
  type EvaluatedEpisode,
  findSnapshot,
  listEpisodes,
  listSiblings,
  listVideosOf,
} from "./evaluationDetail";
import { ReturnStrip } from "./ReturnStrip";
import { listVideos, type Video } from "./videos";

interface EvaluationDrawerProps {
  run: RunDetail;
  /** ID of the evaluation; nothing is shown without one. */
  id: string | undefined;
  color: string;
  onOpen(id: string): void;
  onClose(): void;
}

/** One evaluation: each episode's return, its video, and the snapshot of the evaluated state. */
export function EvaluationDrawer({ run, id, color, onOpen, onClose }: EvaluationDrawerProps) {
  const evaluations = useQuery(evaluationsQuery(run.id));
  const shown = evaluations.data?.find((one) => one.id === id);
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      position="right"
      size="lg"
      title={shown ? `Evaluation at env step ${formatCount(shown.env_step)}` : "Evaluation"}
      closeButtonProps={{ "aria-label": "Close the evaluation" }}
    >
      {shown ? (
        <Content
          key={shown.id}
          run={run}
          evaluation={shown}
          siblings={listSiblings(shown, evaluations.data ?? [])}
          color={color}
          onOpen={onOpen}
        />
      ) : (
        !evaluations.isPending && (
          <EmptyState title="No such evaluation">
            The run has no evaluation <code>{id}</code>.
          </EmptyState>
        )
      )}
    </Drawer>
  );
}

interface ContentProps {
  run: RunDetail;
  evaluation: Evaluation;
  siblings: readonly Evaluation[];
  color: string;
  onOpen(id: string): void;
}

function Content({ run, evaluation, siblings, color, onOpen }: ContentProps) {
  const files = useQuery(videosQuery(run.id));
  const snapshots = useQuery(snapshotsQuery(run.id));
  const all = useMemo(() => listVideos(files.data ?? [], [evaluation]), [files.data, evaluation]);
  const videos = listVideosOf(evaluation, all);
  const episodes = listEpisodes(evaluation, all);
  const [played, setPlayed] = useState<Video | null>(null);
  const current = played ?? videos[0] ?? null;
  return (
    <div className={classes.content}>
      {siblings.length > 1 && (
        <SegmentedControl
          aria-label="Evaluations of this state"
          value={evaluation.id}
          onChange={onOpen}
          data={siblings.map((one, i) => ({ value: one.id, label: nameSibling(one, i) }))}
        />
      )}
      <Facts evaluation={evaluation} />
      <ReturnStrip
        returns={episodes.map((one) => one.episodeReturn)}
        mean={evaluation.mean}
        color={color}
        marked={current?.episode ?? null}
      />
      <VideoBox video={current} autoPlay={played !== null} loading={files.isPending} />
      <EvaluationSnapshot
        evaluation={evaluation}
        snapshot={findSnapshot(evaluation, snapshots.data ?? [])}
        loading={snapshots.isPending}
      />
      <DataTable
        label="Episodes of the evaluation"
        rows={episodes}
        columns={episodeColumns(current, setPlayed)}
        rowId={(row) => String(row.episode)}
      />
    </div>
  );
}

function nameSibling(one: Evaluation, index: number): string {
  const of = one.snapshot_id ? "of the snapshot" : one.source === "evaluation" ? "training" : "";
  return of || `${one.source.replaceAll("_", " ")} ${index + 1}`;
}

function Facts({ evaluation }: { evaluation: Evaluation }) {
  const { stdev, episodes } = evaluation;
  const spread = episodes > 1 ? ` ± ${formatSpread(stdev)} sd` : "";
  const facts: [string, string][] = [
    ["Mean return", `${formatScore(evaluation.mean, stdev)}${spread}`],
    ["Median", formatScore(evaluation.median, stdev)],
    ["Range", `${formatScore(evaluation.min, stdev)} to ${formatScore(evaluation.max, stdev)}`],
    ["Episodes", formatPlural(episodes, "episode")],
    ["Mean length", formatValue(evaluation.length_mean)],
    ["Evaluated", formatMoment(evaluation.created_at)],
  ];
  if (typeof evaluation.success_rate === "number")
    facts.push(["Success", `${formatValue(100 * evaluation.success_rate, 3)} %`]);
  if (evaluation.cut_episodes)
    facts.push(["Cut", `${evaluation.cut_episodes} of ${episodes}, after 10,000 env steps`]);
  for (const [name, value] of Object.entries(evaluation.metrics))
    facts.push([name, formatValue(value)]);
  return (
    <dl className={classes.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface VideoBoxProps {
  video: Video | null;
  autoPlay: boolean;
  loading: boolean;
}

function VideoBox({ video, autoPlay, loading }: VideoBoxProps) {
  if (video === null)
    return loading ? null : (
      <p className={classes.remark}>
        No episode of this evaluation was filmed. The hook <code>video</code> films one of every few
        evaluations.
      </p>
    );
  return (
    <figure className={classes.video}>
      {/* biome-ignore lint/a11y/useMediaCaption: an environment's picture has no sound */}
      <video
        key={video.id}
        src={video.video}
        poster={video.poster}
        aria-label={`Video of episode ${video.episode}`}
        controls
        autoPlay={autoPlay}
        loop
        playsInline
      />
      <figcaption>
        Episode {video.episode}
        {video.episodeReturn !== undefined && `, return ${formatValue(video.episodeReturn)}`}
      </figcaption>
    </figure>
  );
}

function episodeColumns(
  current: Video | null,
  play: (video: Video) => void,
): Column<EvaluatedEpisode>[] {
  return [
    {
      id: "episode",
      header: "Episode",
      width: 90,
      align: "right",
      sort: (row) => row.episode,
      cell: (row) => row.episode,
    },
    {
      id: "return",
      header: "Return",
      width: 140,
      align: "right",
      sort: (row) => row.episodeReturn,
      cell: (row) => <b>{formatValue(row.episodeReturn, 6)}</b>,
    },
    {
      id: "video",
      header: "Video",
      cell: ({ video }) =>
        video !== null && (
          <LinkButton aria-pressed={video.id === current?.id} onClick={() => play(video)}>
            <IconPlayerPlay size={13} /> Play
          </LinkButton>
        ),
    },
  ];
}
