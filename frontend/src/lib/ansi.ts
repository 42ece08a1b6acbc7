/** Terminal colours in log lines. */
import Anser from "anser";

export interface Piece {
  text: string;
  /** Name of the colour without its brightness, such as `red`; `null` for the default colour. */
  color: string | null;
  bold: boolean;
}

/** Sequences that Anser does not know: character sets and titles of a terminal's window. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches escape characters
const OTHER_SEQUENCES = /\u001b[()][A-Z0-9]|\u001b\][^\u0007]*\u0007/g;

/**
 * Splits a line at its escape sequences: text of one colour becomes one piece, and other sequences
 * are dropped.
 */
export function splitIntoPieces(line: string): Piece[] {
  const text = line.replace(OTHER_SEQUENCES, "");
  return Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map((piece) => ({
    text: piece.content,
    color: piece.fg?.replace(/^ansi-(bright-)?/, "") ?? null,
    bold: piece.decorations.includes("bold"),
  }));
}
