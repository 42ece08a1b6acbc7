/** The difference of two texts line by line. */

export interface TextLine {
  text: string;
  /** The text that alone has the line; `null` if both have it. */
  side: "left" | "right" | null;
}

/** Most lines of a text that are compared; what follows is left out. */
export const MOST_LINES = 2_000;

/** Returns the lines of both texts by a longest common subsequence. */
export function diffLines(left: string, right: string): TextLine[] {
  const [a, b] = [split(left), split(right)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  )
    end += 1;
  const same = (text: string): TextLine => ({ text, side: null });
  return [
    ...a.slice(0, start).map(same),
    ...merge(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

/** Keeps the lines that differ with some lines around them; `null` stands for lines left out. */
export function keepHunks(lines: readonly TextLine[], around = 3): (TextLine | null)[] {
  const near = new Set<number>();
  for (const [index, line] of lines.entries())
    if (line.side !== null) for (let i = -around; i <= around; i += 1) near.add(index + i);
  const found: (TextLine | null)[] = [];
  for (const [index, line] of lines.entries())
    if (near.has(index)) found.push(line);
    else if (found.at(-1) !== null) found.push(null);
  return found;
}

function split(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n").slice(0, MOST_LINES);
}

function merge(a: readonly string[], b: readonly string[]): TextLine[] {
  const width = b.length + 1;
  // Length of the longest common subsequence of the rests from (i, j) on.
  const common = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] as number;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i * width + j] =
        a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: TextLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ text: a[i] as string, side: null });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ text: a[i] as string, side: "left" });
      i += 1;
    } else {
      lines.push({ text: b[j] as string, side: "right" });
      j += 1;
    }
  }
  return lines;
}
