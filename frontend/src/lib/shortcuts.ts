/** Keyboard shortcuts: single keys and sequences such as `g e`, inactive in text fields. */

export interface Shortcut {
  /** Keys in order, lower case, parted by blanks: `g e`, `/`, `enter`, `?`. */
  keys: string;
  what: string;
  /** Returns false to let the key through. */
  run(): unknown;
}

const SEQUENCE_TIME = 900;
const registered = new Set<readonly Shortcut[]>();
let pending = "";
let since = 0;

export function registerShortcuts(shortcuts: readonly Shortcut[]): () => void {
  registered.add(shortcuts);
  return () => registered.delete(shortcuts);
}

/** The shortcuts that are active now, the latest registration first. */
export function listActiveShortcuts(): Shortcut[] {
  const seen = new Set<string>();
  const all = [...registered].reverse().flat();
  return all.filter((one) => !seen.has(one.keys) && seen.add(one.keys));
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function isOnControl(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("a, button, [role=option], [role=menuitem]") !== null
  );
}

/** Calls the shortcut of a pressed key, if there is one; exported for tests. */
export function handleKey(event: KeyboardEvent, now = performance.now()): void {
  if (
    event.defaultPrevented ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    isTyping(event.target)
  )
    return;
  const key = event.key.toLowerCase();
  if (key === "shift" || (key === "enter" && isOnControl(event.target))) return;
  if (document.querySelector("[role=dialog]") !== null) return;
  const sequence = pending && now - since < SEQUENCE_TIME ? `${pending} ${key}` : key;
  const all = listActiveShortcuts();
  const hit = all.find((one) => one.keys === sequence) ?? all.find((one) => one.keys === key);
  if (hit !== undefined) {
    pending = "";
    if (hit.run() !== false) event.preventDefault();
    return;
  }
  pending = all.some((one) => one.keys.startsWith(`${sequence} `)) ? sequence : "";
  since = now;
}

/** Handles the keys that the window receives, until the returned function is called. */
export function listenToKeys(): () => void {
  const listener = (event: KeyboardEvent) => handleKey(event);
  window.addEventListener("keydown", listener);
  return () => window.removeEventListener("keydown", listener);
}
