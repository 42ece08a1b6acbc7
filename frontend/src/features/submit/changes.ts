/** The changes of a definition, with the defaults of both sides filled in. */
import { fillDefaults, findUnion, isEqual, type Schema } from "./schema";

export interface Change {
  /** Names of the member and of what it is in, with dots between them. */
  place: string;
  before: string;
  now: string;
}

type Members = Record<string, unknown>;

/** Members that the experiment's ID is not computed from. */
const BESIDE_ID = ["kind", "name", "notes", "schema_version"];

/**
 * Lists what differs between two definitions by value: a default that is written out is no change.
 * The items of a list of named objects, such as hooks, are compared by their names.
 */
export function listChanges(root: Schema, before: unknown, now: unknown): Change[] {
  const fill = (definition: unknown) => {
    const union = findUnion(root, root.properties?.definition ?? {}, definition);
    return withoutNames(fillDefaults(root, union, definition));
  };
  return compare([], fill(before), fill(now), withoutNames(now));
}

function withoutNames(definition: unknown): Members {
  const members = Object.entries(isMembers(definition) ? definition : {});
  return Object.fromEntries(members.filter(([name]) => !BESIDE_ID.includes(name)));
}

/**
 * Compares two values.
 *
 * @param written The present value without the defaults that were filled in.
 */
function compare(
  place: readonly string[],
  before: unknown,
  now: unknown,
  written: unknown,
): Change[] {
  if (isEqual(before, now)) return [];
  if (isMembers(before) && isMembers(now)) return compareMembers(place, before, now, written);
  if (isObjectList(before) && isObjectList(now)) return compareLists(place, before, now, written);
  return [describeChange(place, before, now)];
}

function compareMembers(
  place: readonly string[],
  before: Members,
  now: Members,
  written: unknown,
): Change[] {
  const own = isMembers(written) ? written : {};
  // Another algorithm has other hyperparameters: of those that only one of the two has, the ones
  // that are written say what differs.
  const isOther = typeof before.name === "string" && before.name !== now.name;
  const names = [...new Set([...Object.keys(now), ...Object.keys(before)])];
  return names
    .filter((name) => !isOther || (name in before && name in now) || name in own)
    .flatMap((name) => compare([...place, name], before[name], now[name], own[name]));
}

function compareLists(
  place: readonly string[],
  before: readonly Members[],
  now: readonly Members[],
  written: unknown,
): Change[] {
  const own = Array.isArray(written) ? (written as unknown[]) : [];
  const [formerNames, names] = [listNames(before), listNames(now)];
  if (formerNames === null || names === null) {
    const length = Math.max(before.length, now.length);
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      compare([...place, String(index + 1)], before[index], now[index], own[index]),
    );
  }
  const changes = isEqual(formerNames, names) ? [] : [describeChange(place, formerNames, names)];
  const items = names.flatMap((name, index) => {
    const former = before[formerNames.indexOf(name)] ?? { name };
    const item = now[index] ?? {};
    const shown = formerNames.includes(name) ? item : pickMembers(item, own[index]);
    return compare([...place, name], former, shown, own[index]);
  });
  return [...changes, ...items];
}

/** The members of an object that another one has too. */
function pickMembers(object: Members, other: unknown): Members {
  const names = isMembers(other) ? Object.keys(other) : [];
  return Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));
}

/** The different names of the items of a list; `null` if one has none or two have the same. */
function listNames(items: readonly Members[]): string[] | null {
  const names = items.map((item) => item.name);
  const isNamed = names.every((name) => typeof name === "string");
  return isNamed && new Set(names).size === names.length ? (names as string[]) : null;
}

function describeChange(place: readonly string[], before: unknown, now: unknown): Change {
  const [former, present] = [showMember(before), showMember(now)];
  const isSame = former === present;
  return {
    place: place.join("."),
    before: isSame ? (JSON.stringify(before) ?? former) : former,
    now: isSame ? (JSON.stringify(now) ?? present) : present,
  };
}

/** Writes a value as it is typed into the form. */
function showMember(value: unknown): string {
  if (value === undefined) return "unset";
  if (value === "") return "(empty)";
  if (value === null) return "none";
  if (typeof value !== "object") return String(value);
  const parts = Array.isArray(value)
    ? value.map((item) => (isMembers(item) ? String(item.name ?? showMember(item)) : String(item)))
    : Object.entries(value).map(([name, member]) => `${name}: ${showMember(member)}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isObjectList(value: unknown): value is readonly Members[] {
  return Array.isArray(value) && value.every(isMembers);
}
