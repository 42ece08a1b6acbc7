/**
 * Terminal colours in log lines: SGR sequences become styled pieces, every other escape sequence is
 * dropped.
 */

export interface Piece {
  text: string;
  color: "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "grey" | null;
  bold: boolean;
}

const COLORS: Record<number, Piece["color"]> = {
  30: "grey",
  31: "red",
  32: "green",
  33: "yellow",
  34: "blue",
  35: "magenta",
  36: "cyan",
  37: null,
  90: "grey",
};
// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches escape characters
const SEQUENCE = /\u001b\[([0-9;?]*)([A-Za-z])|\u001b[()][A-Z0-9]|\u001b\][^\u0007]*\u0007/g;

export function pieces(line: string): Piece[] {
  const result: Piece[] = [];
  let color: Piece["color"] = null;
  let bold = false;
  let at = 0;
  const add = (text: string) => text && result.push({ text, color, bold });
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] !== "m") continue;
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) [color, bold] = [null, false];
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if (code === 39) color = null;
      else color = COLORS[code >= 91 && code <= 97 ? code - 60 : code] ?? color;
    }
  }
  add(line.slice(at));
  return result;
}
