/** Numbers and lists as they are typed into a field. */

/** Reads a number; `undefined` for an empty text, `null` if it is no number. */
export function parseNumber(text: string, isWhole: boolean): number | undefined | null {
  const plain = text.replace(/[_\s]/g, "");
  if (plain === "") return undefined;
  const value = Number(plain);
  if (!Number.isFinite(value) || (isWhole && !Number.isSafeInteger(value))) return null;
  return value;
}

/** Reads whole numbers with commas between them; `null` if one is no whole number. */
export function parseIntegers(text: string): number[] | undefined | null {
  if (text.trim() === "") return undefined;
  const values = text.split(",").map((part) => parseNumber(part, true));
  return values.every((one) => typeof one === "number") ? (values as number[]) : null;
}

/** Reads texts with commas between them. */
export function parseTexts(text: string): string[] | undefined {
  const parts = text.split(",").map((part) => part.trim());
  const texts = parts.filter((part) => part !== "");
  return texts.length > 0 ? texts : undefined;
}
