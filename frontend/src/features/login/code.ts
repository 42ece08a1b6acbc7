/** The code of a login link, however much of the link was given. */
export function codeOf(text: string): string {
  const found = /(?:^|[#&?])code=([^&\s"]+)/.exec(text.trim());
  return found?.[1] ?? text.trim().replace(/^["']|["',]+$/g, "");
}
