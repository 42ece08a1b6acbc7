/** The path below which browsers reach the server, as in `https://example.org/palestra`. */

/**
 * Returns the path that the server wrote into the page, without a slash at its end: empty where the
 * server is at `/`, and in development.
 */
export function getPublicPath(): string {
  const written = document.querySelector<HTMLMetaElement>('meta[name="palestra-path"]')?.content;
  return written?.startsWith("/") ? written.replace(/\/+$/, "") : "";
}

/** The address of this server, as commands, workers and shared links take it. */
export function getServerAddress(): string {
  return window.location.origin + getPublicPath();
}

/** The key of a value that the browser stores: servers of one host share its storage. */
export function buildStorageKey(name: string): string {
  return name + getPublicPath();
}
