/** The project shown last, which this browser remembers. */

const KEY = "palestra.project";

export function rememberProject(slug: string): void {
  try {
    window.localStorage.setItem(KEY, slug);
  } catch {
    // A browser that refuses to store begins with the page of all projects.
  }
}

export function readRememberedProject(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
