/** Tables as LaTeX, with the rules of the package booktabs. */
import type { Table } from "./csv";

const SPECIAL: Readonly<Record<string, string>> = {
  "\\": "\\textbackslash{}",
  "{": "\\{",
  "}": "\\}",
  "&": "\\&",
  "%": "\\%",
  $: "\\$",
  "#": "\\#",
  _: "\\_",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "<": "\\textless{}",
  ">": "\\textgreater{}",
  "|": "\\textbar{}",
};

/** Escapes the characters that LaTeX interprets. */
export function escapeLatex(text: string): string {
  return text
    .replace(/[\\{}&%$#_~^<>|]/g, (one) => SPECIAL[one] ?? one)
    .replaceAll("−", "$-$")
    .replaceAll("±", "$\\pm$");
}

/**
 * A table as a `tabular`. Numbers are right-aligned and have at most `digits` significant digits;
 * the comment lines say where the numbers are from.
 */
export function buildLatex(
  { header, rows }: Table,
  comments: readonly string[] = [],
  digits = 4,
): string {
  const isNumeric = header.map((_, column) =>
    rows.every((row) => row[column] === null || typeof row[column] === "number"),
  );
  const write = (cell: Table["rows"][number][number]) =>
    typeof cell === "number"
      ? escapeLatex(String(Number.parseFloat(cell.toPrecision(digits))).replace(/^-/, "−"))
      : cell === null || cell === undefined
        ? "--"
        : escapeLatex(String(cell));
  const line = (cells: readonly string[]) => `${cells.join(" & ")} \\\\`;
  return [
    ...comments.map((one) => `% ${one.replaceAll(/[\r\n]+/g, " ")}`),
    "% needs \\usepackage{booktabs}",
    `\\begin{tabular}{${isNumeric.map((one) => (one ? "r" : "l")).join("")}}`,
    "\\toprule",
    line(header.map(escapeLatex)),
    "\\midrule",
    ...rows.map((row) => line(row.map(write))),
    "\\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}
