/** IDs and random numbers that are the same at each start. */

let serial = 0;
export const id = (prefix: string) => `${prefix}_01kagm${String(++serial).padStart(20, "0")}`;

let state = 42;
export const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};
export const noise = () => (random() + random() + random() - 1.5) * 1.2;
