import { formatDuration } from "@/lib/format";
import { IconAlertTriangle } from "./icons";
import classes from "./WrongClock.module.css";

interface WrongClockProps {
  worker: { has_wrong_clock?: boolean; clock_skew_seconds?: number | null };
}

/** Says by how much a worker's clock is wrong; shows nothing if it is not. */
export function WrongClock({ worker: { has_wrong_clock, clock_skew_seconds } }: WrongClockProps) {
  if (!has_wrong_clock || typeof clock_skew_seconds !== "number") return null;
  const seconds = Math.abs(Math.round(clock_skew_seconds));
  const side = clock_skew_seconds > 0 ? "ahead" : "behind";
  return (
    <span
      className={classes.wrong}
      title={
        `The clock of this machine is ${seconds} seconds ${side} of the server's. Wall times of ` +
        "its points are wrong by as much; jobs and leases are not affected. Set its clock, for " +
        "example with NTP."
      }
    >
      <IconAlertTriangle size={13} /> clock {formatDuration(seconds)} {side}
    </span>
  );
}
