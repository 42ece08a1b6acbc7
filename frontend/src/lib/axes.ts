/** The x axes of curves in words. */
export const AXIS_LABELS = {
  env_step: "env steps",
  update: "updates",
  episode: "episodes",
  relative: "elapsed time",
  wall: "time of day",
} as const;
