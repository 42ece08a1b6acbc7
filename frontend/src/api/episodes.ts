/** Training episodes of a run, from the export of records. */
import { queryOptions } from "@tanstack/react-query";
import { parseCsv } from "@/lib/csv";
import { getText } from "./client";
import { keys } from "./queries";

export interface Episode {
  episode: number;
  env_index: number;
  env_step: number;
  wall: number;
  episode_return: number;
  episode_length: number;
  terminated: boolean;
}

const COLUMNS = [
  "episode",
  "env_index",
  "env_step",
  "wall",
  "episode_return",
  "episode_length",
  "terminated",
] as const;

/** The episodes numbered `first` to `last`, both included, the newest first. */
export function episodesQuery(id: string, first: number, last: number) {
  return queryOptions({
    queryKey: [...keys.run(id), "episodes", first, last],
    queryFn: async ({ signal }) => {
      const text = await getText(
        "/records:export",
        { run: id, kind: "episodes", column: COLUMNS, x: "episode", start: first, end: last },
        signal,
      );
      return readEpisodes(text);
    },
  });
}

/** Reads the CSV of an export of episodes. */
export function readEpisodes(text: string): Episode[] {
  const [header = [], ...rows] = parseCsv(text);
  const at = (row: readonly string[], name: (typeof COLUMNS)[number]) =>
    row[header.indexOf(name)] ?? "";
  const found = rows.map((row) => ({
    episode: Number(at(row, "episode")),
    env_index: Number(at(row, "env_index")),
    env_step: Number(at(row, "env_step")),
    wall: Number(at(row, "wall")),
    episode_return: Number(at(row, "episode_return") || Number.NaN),
    episode_length: Number(at(row, "episode_length")),
    terminated: at(row, "terminated").toLowerCase() === "true",
  }));
  return found.sort((a, b) => b.episode - a.episode || b.env_step - a.env_step);
}
