import type { Pool } from "@/api/types";
import { formatDuration } from "@/lib/format";
import { formatHours } from "@/lib/hours";
import { getServerAddress } from "@/lib/publicPath";

/** Formats a time limit, for example `24 h`; limits below an hour in minutes and seconds. */
function formatLimit(seconds: number): string {
  return seconds < 3600 ? formatDuration(seconds) : `${formatHours(seconds)} h`;
}

/** The limits of wall time in words. */
export function describeWallTimes({ default_wall_seconds, max_wall_seconds }: Pool): string {
  const parts = [
    default_wall_seconds !== null && `${formatLimit(default_wall_seconds)} by default`,
    max_wall_seconds !== null && `at most ${formatLimit(max_wall_seconds)}`,
  ].filter(Boolean);
  return parts.length === 0 ? "not limited" : parts.join(", ");
}

/** Commands that start a worker of a pool; without a secret the file must exist already. */
export function buildWorkerCommand(secret: string | null): string {
  const start = `palestra worker --server ${getServerAddress()} --token-file worker.token`;
  const file = `(umask 077; printf '%s\\n' '${secret}' > worker.token)`;
  return secret === null ? `${start} --slots 1` : `${file}\n${start} --slots 1`;
}
