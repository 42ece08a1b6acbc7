import { flag, type Search, text, tidy } from "@/lib/search";

/** The page to show after the login, and whether the link is for a new password. */
export function readLoginSearch(search: Search) {
  return tidy({ to: text(search, "to"), reset: flag(search, "reset") });
}

/** Reads the code from a login link, from its fragment, or from the code itself. */
export function readCode(text: string): string {
  const found = /(?:^|[#&?])code=([^&\s"]+)/.exec(text.trim());
  return found?.[1] ?? text.trim().replace(/^["']|["',]+$/g, "");
}
