/** The login name that logged in last, which this browser remembers for the login page. */
import { buildStorageKey } from "./publicPath";

const NAME = "palestra.user";

export function rememberUser(name: string): void {
  try {
    window.localStorage.setItem(buildStorageKey(NAME), name);
  } catch {
    // A browser that refuses to store shows an empty field.
  }
}

export function readRememberedUser(): string {
  try {
    return window.localStorage.getItem(buildStorageKey(NAME)) ?? "";
  } catch {
    return "";
  }
}
