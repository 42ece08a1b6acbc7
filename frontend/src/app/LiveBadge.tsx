import { Tooltip } from "@mantine/core";
import { useInterval } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { duration } from "@/lib/format";
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

/** How the stream stands; a click pauses it and lets it catch up again. */
export function LiveBadge() {
  const stream = useStream();
  const status = useStreamStatus();
  const [now, setNow] = useState(Date.now);
  const timer = useInterval(() => setNow(Date.now()), 1000);
  useEffect(() => {
    timer.start();
    return timer.stop;
  }, [timer.start, timer.stop]);
  const silent = status.heardAt === null ? null : (now - status.heardAt) / 1000;
  const old =
    status.state !== "live" && silent !== null && silent > 2 ? ` · ${duration(silent)}` : "";
  const quiet = silent !== null && silent > STALE_AFTER ? `; quiet for ${duration(silent)}` : "";
  const hint =
    status.state === "paused"
      ? "The page stands still. Click to catch up."
      : status.state === "live"
        ? `Changes arrive as they happen${quiet}. Click to pause.`
        : "The page shows what it last knew and tries again by itself.";
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
