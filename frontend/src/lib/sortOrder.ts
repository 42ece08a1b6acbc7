/** The order of a list: keys with commas between them, `-` in front of one reverses it. */

export interface SortKey {
  id: string;
  isDescending: boolean;
}

/** Keys of an order, at most; the server refuses more. */
export const MOST_SORT_KEYS = 4;

export function readOrder(written: string): SortKey[] {
  return written
    .split(",")
    .map((part) => ({ id: part.replace(/^-/, ""), isDescending: part.startsWith("-") }));
}

export function writeOrder(order: readonly SortKey[]): string {
  return order.map(({ id, isDescending }) => `${isDescending ? "-" : ""}${id}`).join(",");
}

/** Changes the direction of a key, or adds it behind the others: the last one gives way if needed. */
export function addKey(order: readonly SortKey[], key: SortKey): SortKey[] {
  const place = order.findIndex(({ id }) => id === key.id);
  if (place >= 0) return order.with(place, key);
  return [...order.slice(0, MOST_SORT_KEYS - 1), key];
}

export function removeKey(order: readonly SortKey[], id: string): SortKey[] {
  return order.filter((key) => key.id !== id);
}
