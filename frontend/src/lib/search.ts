/**
 * Reads parameters of the URL. Values of a wrong type are left out, so that no link can break a
 * page.
 */

export type Search = Record<string, unknown>;

export function text(search: Search, name: string): string | undefined {
  const found = search[name];
  return typeof found === "string" && found !== ""
    ? found
    : typeof found === "number"
      ? String(found)
      : undefined;
}

export function number(
  search: Search,
  name: string,
  low = Number.NEGATIVE_INFINITY,
  high = Number.POSITIVE_INFINITY,
): number | undefined {
  const found = Number(search[name]);
  return search[name] !== undefined && Number.isFinite(found) && found >= low && found <= high
    ? found
    : undefined;
}

export function flag(search: Search, name: string): true | undefined {
  return search[name] === true || search[name] === "true" || search[name] === 1 ? true : undefined;
}

export function choice<const Choice extends string>(
  search: Search,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  return choices.find((one) => one === search[name]);
}

export function numbers(search: Search, name: string): number[] | undefined {
  const found = search[name];
  const list = Array.isArray(found)
    ? found.filter((one): one is number => typeof one === "number")
    : [];
  return list.length > 0 ? list : undefined;
}

export function texts(search: Search, name: string): string[] | undefined {
  const found = search[name];
  const list = Array.isArray(found)
    ? found.filter((one): one is string => typeof one === "string" && one !== "")
    : [];
  return list.length > 0 ? [...new Set(list)] : undefined;
}

/** Drops undefined members, which keeps URLs short. */
export function tidy<Value extends object>(
  value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}
