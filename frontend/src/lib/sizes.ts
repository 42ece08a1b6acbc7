/** Sizes in bytes as a number with a unit. */

export const UNITS = ["MiB", "GiB", "TiB"] as const;
export type Unit = (typeof UNITS)[number];

export interface Size {
  /** As typed; empty for no limit. */
  number: string;
  unit: Unit;
}

const BYTES: Record<Unit, number> = { MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Splits bytes into a number and the largest unit in which it is at least one. */
export function splitSize(bytes: number | null): Size {
  if (bytes === null) return { number: "", unit: "GiB" };
  const unit: Unit = bytes >= BYTES.TiB ? "TiB" : bytes >= BYTES.GiB ? "GiB" : "MiB";
  return { number: String(Number((bytes / BYTES[unit]).toFixed(3))), unit };
}

/** Bytes of a typed size; `null` for an empty field, `NaN` for text that is no number from 0 on. */
export function parseBytes({ number, unit }: Size): number | null {
  const typed = number.trim().replace(",", ".");
  if (typed === "") return null;
  const found = /^\d+(\.\d+)?$/.test(typed) ? Number(typed) : Number.NaN;
  return Math.round(found * BYTES[unit]);
}
