type Cell = string | number | boolean | null | undefined;

/** The cells of a table; each row has a cell for each heading. */
export interface Table {
  header: readonly string[];
  rows: readonly (readonly Cell[])[];
}

/**
 * A table as CSV (RFC 4180); a cell that a spreadsheet would take for a formula is quoted as text.
 */
export function buildCsv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return `${[header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

function cell(value: Cell): string {
  if (value === null || value === undefined) return "";
  const text =
    typeof value === "string" && /^[=+\-@\t]/.test(value) && Number.isNaN(Number(value))
      ? `'${value}`
      : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Reads CSV (RFC 4180) into rows of cells; lines end with LF or CRLF. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cells = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;
  while (cells.lastIndex < text.length) {
    const match = cells.exec(text);
    if (match === null) throw new Error("This is no CSV: a quoted cell has no end.");
    row.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (match[3] === ",") continue;
    rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push([...row, ""]);
  return rows;
}

/** Saves a text as a file through the browser. */
export function saveText(name: string, text: string, type = "text/csv"): void {
  saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
}

/** Saves a file through the browser. */
export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
