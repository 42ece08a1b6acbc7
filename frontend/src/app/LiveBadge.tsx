import { Tooltip } from "@mantine/core";
import { useInterval } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { formatDuration } from "@/lib/format";
import { useStream, useStreamStatus } from "@/live/useLive";
import classes from "./LiveBadge.module.css";

const WORDS = {
  live: "Live",
  connecting: "Connecting",
  reconnecting: "Reconnecting",
  paused: "Paused",
  off: "Connecting",
} as const;

const STALE_AFTER = 10;

/** The state of the live stream; a click pauses or resumes it. */
export function LiveBadge() {
  const stream = useStream();
  const status = useStreamStatus();
  const [now, setNow] = useState(Date.now);
  const timer = useInterval(() => setNow(Date.now()), 1000);
  useEffect(() => {
    timer.start();
    return timer.stop;
  }, [timer.start, timer.stop]);
  const silent = status.lastMessageAt === null ? null : (now - status.lastMessageAt) / 1000;
  const old =
    status.state !== "live" && silent !== null && silent > 2 ? ` · ${formatDuration(silent)}` : "";
  const quiet =
    silent !== null && silent > STALE_AFTER ? `, the last one ${formatDuration(silent)} ago` : "";
  const hint =
    status.state === "paused"
      ? "Updates are paused. Click to resume and catch up."
      : status.state === "live"
        ? `Updates arrive live${quiet}. Click to pause.`
        : "Not connected. The page shows its last data and reconnects automatically.";
  // A page without live data opens no stream.
  if (status.state === "off") return null;
  return (
    <Tooltip label={hint} multiline maw={240}>
      <button
        type="button"
        className={classes.badge}
        data-state={status.state}
        data-testid="live-badge"
        onClick={() => (status.state === "paused" ? stream.resume() : stream.pause())}
      >
        <span className={classes.light} />
        <span aria-live="polite">{WORDS[status.state]}</span>
        <span className={classes.age}>{old}</span>
      </button>
    </Tooltip>
  );
}
