/** Seeds as text: `0-2, 7`. */

const LARGEST = 2 ** 32 - 1;
const MOST = 10_000;

/** Reads numbers and ranges; a text says what is wrong with them. */
export function parseSeeds(text: string): number[] | string {
  const seeds: number[] = [];
  for (const part of text.split(",")) {
    const match = /^\s*(\d{1,10})(?:\s*-\s*(\d{1,10}))?\s*$/.exec(part);
    if (match === null) return "Write numbers and ranges, such as 0-2, 7.";
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (last < first) return `${first}-${last} goes backwards: write the lower seed first.`;
    if (last > LARGEST) return `A seed is at most ${LARGEST}.`;
    if (last - first >= MOST || seeds.length + last - first >= MOST)
      return `Write at most ${MOST.toLocaleString("en-US")} seeds.`;
    for (let seed = first; seed <= last; seed += 1) seeds.push(seed);
  }
  return new Set(seeds).size === seeds.length ? seeds : "Write each seed once.";
}

/** Writes seeds with ranges of at least three. */
export function formatSeeds(seeds: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < seeds.length; ) {
    const first = seeds[at] as number;
    let end = at + 1;
    while (seeds[end] === first + end - at) end += 1;
    const count = end - at;
    if (count >= 3) parts.push(`${first}-${first + count - 1}`);
    else parts.push(...seeds.slice(at, end).map(String));
    at = end;
  }
  return parts.join(", ");
}

/** The smallest seeds that are not in use. */
export function proposeSeeds(count: number, used: readonly number[]): number[] {
  const taken = new Set(used);
  const seeds: number[] = [];
  for (let seed = 0; seeds.length < count; seed += 1) if (!taken.has(seed)) seeds.push(seed);
  return seeds;
}
