/** A JSON document as lines of a tree, and the difference of two documents line by line. */

export type Json =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly Json[]
  | { readonly [key: string]: Json };

export interface Line {
  /** JSON pointer of the member. */
  pointer: string;
  key: string;
  depth: number;
  /** Text of a leaf; `null` for a branch. */
  text: string | null;
  kind: "string" | "number" | "boolean" | "null" | "branch";
}

export interface DiffLine extends Line {
  /**
   * `same` on both sides, `changed` leaf, `added` only here, `removed` only in the other document.
   */
  status: "same" | "changed" | "added" | "removed";
  /** The other document's text where it differs. */
  other: string | null;
}

function isLeaf(value: Json): boolean {
  if (value === null || typeof value !== "object") return true;
  if (Array.isArray(value)) return value.every((item) => item === null || typeof item !== "object");
  return Object.keys(value).length === 0;
}

function kindOf(value: Json): Line["kind"] {
  if (value === null) return "null";
  if (typeof value === "number" || typeof value === "boolean")
    return typeof value as "number" | "boolean";
  return typeof value === "string" ? "string" : "number";
}

function leafText(value: Json): string {
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) >= 1000)
    return value.toLocaleString("en-US");
  if (Array.isArray(value))
    return value.length === 0 ? "none" : value.map((item) => leafText(item as Json)).join(" · ");
  if (value !== null && typeof value === "object") return "none";
  return typeof value === "string" ? value || "(empty)" : value === null ? "none" : String(value);
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Lines of a document in its order; `null` members are shown as `none`. */
export function lines(document: Json, pointer = "", depth = 0): Line[] {
  if (document === null || typeof document !== "object") return [];
  const entries: [string, Json][] = Array.isArray(document)
    ? document.map((item: Json, index) => [String(index + 1), item])
    : Object.entries(document);
  return entries.flatMap(([key, value]) => {
    const place = `${pointer}/${escaped(key)}`;
    if (isLeaf(value))
      return [{ pointer: place, key, depth, text: leafText(value), kind: kindOf(value) }];
    return [
      { pointer: place, key, depth, text: null, kind: "branch" as const },
      ...lines(value, place, depth + 1),
    ];
  });
}

/**
 * Lines of `document`, each with the value in `other`; lines that only `other` has follow their
 * nearest predecessor.
 */
export function diff(document: Json, other: Json): DiffLine[] {
  const mine = lines(document);
  const theirs = lines(other);
  const others = new Map(theirs.map((line) => [line.pointer, line]));
  const known = new Set(mine.map((line) => line.pointer));
  const result: DiffLine[] = mine.map((line) => {
    const found = others.get(line.pointer);
    if (found === undefined) return { ...line, status: "added", other: null };
    // The text `none` and the number 1 look like `null` and the text `1`.
    const isSame = found.text === line.text && found.kind === line.kind;
    return { ...line, status: isSame ? "same" : "changed", other: isSame ? null : found.text };
  });
  let anchor = -1;
  for (const line of theirs) {
    const at = result.findIndex((row) => row.pointer === line.pointer);
    if (known.has(line.pointer)) anchor = at;
    else {
      anchor += 1;
      result.splice(anchor, 0, { ...line, text: null, other: line.text, status: "removed" });
    }
  }
  return result;
}

/** Keeps the lines that differ and the lines of their parents. */
export function onlyChanges(rows: readonly DiffLine[]): DiffLine[] {
  const changed = rows.filter(
    (row) => row.status !== "same" && !(row.kind === "branch" && row.status === "changed"),
  );
  return rows.filter((row) =>
    changed.some(
      (line) => line.pointer === row.pointer || line.pointer.startsWith(`${row.pointer}/`),
    ),
  );
}
