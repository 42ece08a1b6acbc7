/**
 * The submission as YAML text. The text is what the page holds: the form reads its values from it
 * and changes single members in it, so that comments and order stay.
 */
import { Document, isMap, isScalar, LineCounter, parseDocument, visit } from "yaml";

export type Path = readonly (string | number)[];

/** What the text says: a document, or why it cannot be read. */
export type Reading =
  | { document: Record<string, unknown>; problem: null; line: null }
  | { document: null; problem: string; line: number | null };

const MAX_CHARACTERS = 1_048_576;
const FORMAT = { lineWidth: 100, flowCollectionPadding: false };
const OPTIONS = { version: "1.2", prettyErrors: false, maxAliasCount: 64 } as const;

/** Reads a text as YAML, of which JSON is a part. */
export function readText(text: string): Reading {
  if (text.length > MAX_CHARACTERS) return refuse("The document is larger than 1 MiB.", null);
  const lineCounter = new LineCounter();
  const parsed = parseDocument(text, { ...OPTIONS, lineCounter });
  const lineAt = (offset: number) => lineCounter.linePos(offset).line;
  const [error] = parsed.errors;
  if (error !== undefined) return refuse(error.message, lineAt(error.pos[0]));
  let unsafe: number | null = null;
  visit(parsed, {
    Scalar: (_key, node) => {
      const { value, range } = node;
      const isExact = typeof value !== "number" || isStorable(value);
      if (!isExact && unsafe === null) unsafe = lineAt(range?.[0] ?? 0);
    },
  });
  if (unsafe !== null)
    return refuse("A number must be finite, and a whole one below 2^53.", unsafe);
  if (!isMap(parsed.contents))
    return refuse("Write a definition with its options, as key: value.", null);
  try {
    return { document: parsed.toJS(OPTIONS) as Record<string, unknown>, problem: null, line: null };
  } catch (caught) {
    return refuse(caught instanceof Error ? caught.message : String(caught), null);
  }
}

function refuse(problem: string, line: number | null): Reading {
  return { document: null, problem, line };
}

/** Whether the server receives the number that is written. */
function isStorable(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/** Writes a document as YAML: short lists on one line, everything else in blocks. */
export function writeText(document: unknown): string {
  const made = new Document(document, OPTIONS);
  visit(made, {
    Seq: (_key, node) => {
      node.flow = node.items.every((item) => isScalar(item));
    },
  });
  return made.toString(FORMAT);
}

/** Wraps a definition that stands alone, as the command does. */
export function wrapDefinition(text: string): string {
  const { document } = readText(text);
  const isAlone = document !== null && "kind" in document && !("definition" in document);
  return isAlone ? writeText({ definition: document }) : text;
}

/** Returns the text with one member changed; `undefined` removes it and objects left empty. */
export function changeMember(text: string, path: Path, value: unknown): string {
  const parsed = parseDocument(text, OPTIONS);
  if (parsed.errors.length > 0) return text;
  if (value === undefined) removeAt(parsed, path);
  else {
    makeParents(parsed, path);
    const before = parsed.getIn(path, true);
    // A scalar keeps the comment beside it.
    if (isScalar(before) && (typeof value !== "object" || value === null)) before.value = value;
    else parsed.setIn(path, createNode(parsed, value));
  }
  return parsed.toString(FORMAT);
}

type Parsed = ReturnType<typeof parseDocument>;

function createNode(parsed: Parsed, value: unknown) {
  const isFlat = Array.isArray(value) && value.every((one) => typeof one !== "object");
  return parsed.createNode(value, isFlat ? { flow: true } : {});
}

/** Replaces what is no object on the way to a member, such as `null`. */
function makeParents(parsed: Parsed, path: Path): void {
  for (let depth = 1; depth < path.length; depth += 1) {
    const place = path.slice(0, depth);
    const isIndex = typeof path[depth] === "number";
    const node = parsed.getIn(place, true);
    if (node === undefined || node === null || isScalar(node))
      parsed.setIn(place, parsed.createNode(isIndex ? [] : {}));
  }
}

function removeAt(parsed: Parsed, path: Path): void {
  if (!parsed.hasIn(path)) return;
  parsed.deleteIn(path);
  const parent = path.slice(0, -1);
  // The two parts of the document stay.
  if (parent.length < 2) return;
  const node = parsed.getIn(parent, true);
  if (isMap(node) && node.items.length === 0) removeAt(parsed, parent);
}

/** The value at a path of a document. */
export function readMember(document: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null
        ? (at as Record<string | number, unknown>)[key]
        : undefined,
    document,
  );
}
