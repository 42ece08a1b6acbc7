/** Names of series, grouped by the part before the slash. */

export interface Section {
  prefix: string;
  names: string[];
}

const FIRST = ["evaluation", "episode", "loss", "policy", "value", "q"];
const LAST = ["time", "system"];
/** Series that come first in their section; lengths of episodes come last. */
const FIRST_NAMES = ["mean", "return", "median", "min", "max", "stdev"];

/** Orders names with numbers by the numbers: layer/2 before layer/10. */
const { compare } = new Intl.Collator("en", { numeric: true });

function rank(prefix: string): number {
  if (FIRST.includes(prefix)) return FIRST.indexOf(prefix);
  return LAST.includes(prefix) ? 200 + LAST.indexOf(prefix) : 100;
}

/** Place of a series in its section; those of one place are in the order of their names. */
function rankName(name: string): number {
  const own = name.slice(name.indexOf("/") + 1);
  if (own.startsWith("length")) return FIRST_NAMES.length + 1;
  const first = FIRST_NAMES.indexOf(own);
  return first < 0 ? FIRST_NAMES.length : first;
}

/**
 * Returns a test of series names: by regular expression, or by substring if the text is not one.
 */
export function matcher(query: string | undefined): (name: string) => boolean {
  if (!query) return () => true;
  try {
    const pattern = new RegExp(query, "i");
    return (name) => pattern.test(name);
  } catch {
    return (name) => name.toLowerCase().includes(query.toLowerCase());
  }
}

export function sections(names: readonly string[], query: string | undefined): Section[] {
  const matches = matcher(query);
  const found = new Map<string, string[]>();
  for (const name of names) {
    if (!matches(name)) continue;
    const prefix = name.includes("/") ? (name.split("/")[0] as string) : "other";
    found.set(prefix, [...(found.get(prefix) ?? []), name]);
  }
  const all = [...found].map(([prefix, members]) => ({
    prefix,
    names: members.sort((a, b) => rankName(a) - rankName(b) || compare(a, b)),
  }));
  return all.sort((a, b) => rank(a.prefix) - rank(b.prefix) || compare(a.prefix, b.prefix));
}
