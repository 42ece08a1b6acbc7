/** The lifetimes of a token that can be chosen, in days. */
export const LIFETIMES = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "180", label: "180 days" },
  { value: "365", label: "1 year" },
];

/** Hours for which the previous secret can stay valid after a rotation. */
export const OVERLAPS = [
  { value: "0", label: "not at all: it leaked" },
  { value: "1", label: "1 hour" },
  { value: "24", label: "1 day" },
  { value: "168", label: "7 days" },
  { value: "720", label: "30 days" },
];
