/** What a change of waiting jobs would do, in words with local times. Pure. */
import type { ChangePreview } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { formatTimeOfStart } from "@/lib/startEstimate";

type Start = ChangePreview["starts"][number];

/** One sentence: `Would start at about 14:20 instead of 15:05; 3 other jobs of yours start later.` */
export function describePreview(found: ChangePreview, now = Date.now()): string {
  const [first] = found.starts;
  const start = first && describeStart(first, now);
  if (start === undefined) return found.sentence;
  const beside = describeBeside(found);
  return found.jobs === 1
    ? `Would ${start}${beside}.`
    : `The first of ${formatCount(found.jobs)} jobs would ${start}${beside}.`;
}

/** When a job would start; `undefined` if only the server's sentence says it. */
function describeStart({ start, new_start: next }: Start, now: number): string | undefined {
  if (!next.median) return undefined;
  const [former, latter] = [start.median, next.median].map((one) => one && formatNear(one, now));
  if (!former) return `start ${latter}`;
  return former === latter
    ? `start ${latter}, as it does now`
    : `start ${latter} instead of ${former.replace(/^at about /, "")}`;
}

function formatNear(iso: string, now: number): string {
  return Date.parse(iso) - now < 60_000
    ? "within a minute"
    : `at about ${formatTimeOfStart(iso, now)}`;
}

function describeBeside({ own, others }: ChangePreview): string {
  const parts = (["later", "earlier"] as const).flatMap((word) => {
    const counts = [
      own[word] > 0 ? `${formatPlural(own[word], "other job")} of yours` : "",
      others[word] > 0 ? `${formatPlural(others[word], "job")} of other people` : "",
    ].filter(Boolean);
    const verb = own[word] + others[word] === 1 ? "starts" : "start";
    return counts.length > 0 ? [`${counts.join(" and ")} ${verb} ${word}`] : [];
  });
  return parts.length > 0 ? `; ${parts.join(", ")}` : "";
}

/** Place and start of a job, without and with the change: `place 2 → 3, 14:20 → 14:40`. */
export function describeShift(one: Start, now = Date.now()): string {
  const places = `place ${formatPlace(one.place)} → ${formatPlace(one.new_place)}`;
  const times = [one.start.median, one.new_start.median].map((time) =>
    time ? formatTimeOfStart(time, now) : "unknown",
  );
  return times.every((time) => time === "unknown")
    ? places
    : `${places}, start ${times.join(" → ")}`;
}

function formatPlace(place: number | null): string {
  return place === null ? "none" : formatCount(place);
}
