/** The login name that logged in last, which this browser remembers for the login page. */

const KEY = "palestra.user";

export function rememberUser(name: string): void {
  try {
    window.localStorage.setItem(KEY, name);
  } catch {
    // A browser that refuses to store shows an empty field.
  }
}

export function readRememberedUser(): string {
  try {
    return window.localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
