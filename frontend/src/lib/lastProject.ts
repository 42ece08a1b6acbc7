/** The project shown last, which this browser remembers. */
import { buildStorageKey } from "./publicPath";

const NAME = "palestra.project";

export function rememberProject(slug: string): void {
  try {
    window.localStorage.setItem(buildStorageKey(NAME), slug);
  } catch {
    // A browser that refuses to store begins with the page of all projects.
  }
}

export function readRememberedProject(): string | null {
  try {
    return window.localStorage.getItem(buildStorageKey(NAME));
  } catch {
    return null;
  }
}
