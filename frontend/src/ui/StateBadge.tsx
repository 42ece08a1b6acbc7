import type { ComponentType } from "react";
import {
  IconAlertTriangle,
  IconBan,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconClockHour4,
  IconHourglassLow,
  IconLoader2,
  IconPlayerPause,
  IconPlugConnectedX,
} from "./icons";
import classes from "./StateBadge.module.css";

type Tone = "active" | "good" | "bad" | "warn" | "neutral";

const LOOKS: Record<
  string,
  { icon: ComponentType<{ size?: number; stroke?: number }>; tone: Tone; spins?: boolean }
> = {
  queued: { icon: IconClockHour4, tone: "neutral" },
  starting: { icon: IconLoader2, tone: "active", spins: true },
  running: { icon: IconLoader2, tone: "active", spins: true },
  pausing: { icon: IconHourglassLow, tone: "warn" },
  paused: { icon: IconPlayerPause, tone: "warn" },
  cancelling: { icon: IconHourglassLow, tone: "neutral" },
  preempting: { icon: IconHourglassLow, tone: "warn" },
  lost: { icon: IconPlugConnectedX, tone: "warn" },
  succeeded: { icon: IconCircleCheck, tone: "good" },
  failed: { icon: IconCircleX, tone: "bad" },
  cancelled: { icon: IconBan, tone: "neutral" },
  drained: { icon: IconHourglassLow, tone: "neutral" },
  ended: { icon: IconCircleCheck, tone: "neutral" },
  online: { icon: IconCircleCheck, tone: "good" },
  draining: { icon: IconHourglassLow, tone: "warn" },
  unreachable: { icon: IconAlertTriangle, tone: "warn" },
  active: { icon: IconCircleCheck, tone: "good" },
  disabled: { icon: IconBan, tone: "neutral" },
  open: { icon: IconClockHour4, tone: "active" },
  redeemed: { icon: IconCircleCheck, tone: "good" },
  expired: { icon: IconHourglassLow, tone: "neutral" },
  revoked: { icon: IconBan, tone: "neutral" },
  offline: { icon: IconPlugConnectedX, tone: "neutral" },
};

type Phase = "starting" | "compiling";

const HINTS: Record<Phase, string> = {
  starting: "The attempt loads its snapshot and libraries and builds agent and environments.",
  compiling:
    "An update is being compiled. The code stays on the worker, which loads it for later " +
    "trainings of this kind.",
};

const FALLBACK = { icon: IconCircleDashed, tone: "neutral" as const, spins: false };

interface StateBadgeProps {
  state: string;
  /** What the trainer of a run does as long as it does not train; shown in place of the state. */
  phase?: Phase | null | undefined;
  bare?: boolean;
}

/** Shows a state by icon and word, so that it can be read without colours. */
export function StateBadge({ state, phase, bare = false }: StateBadgeProps) {
  const { icon: Icon, tone, spins } = { ...FALLBACK, ...LOOKS[state] };
  return (
    <span
      className={`${classes.badge} ${classes[tone]} ${bare ? classes.bare : ""}`}
      data-state={state}
      title={phase ? HINTS[phase] : undefined}
    >
      <span className={spins ? classes.spins : classes.icon}>
        <Icon size={14} stroke={2} />
      </span>
      {phase ?? state}
    </span>
  );
}

const ORDER = ["running", "queued", "paused", "failed", "cancelled", "succeeded"];

/** Shows the number of runs in each state, as icons with counts. */
export function StateCounts({ counts }: { counts: Partial<Record<string, number>> }) {
  const shown = ORDER.filter((state) => (counts[state] ?? 0) > 0);
  const all = shown.map((state) => `${counts[state]} ${state}`).join(", ");
  return (
    <span className={classes.counts} title={all}>
      {shown.map((state) => {
        const { icon: Icon, tone, spins } = { ...FALLBACK, ...LOOKS[state] };
        return (
          <span key={state} className={`${classes.count} ${classes[tone]}`}>
            <span className={spins ? classes.spins : classes.icon}>
              <Icon size={13} stroke={2} />
            </span>
            {counts[state]}
            <span className="hidden-visually"> {state}</span>
          </span>
        );
      })}
    </span>
  );
}
