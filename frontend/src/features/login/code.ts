/** The code of a login link, of its fragment or of the code alone. */
export function codeOf(text: string): string {
  const found = /(?:^|[#&?])code=([^&\s"]+)/.exec(text.trim());
  return found?.[1] ?? text.trim().replace(/^["']|["',]+$/g, "");
}
