/** The draft of a submission, kept in the session's storage until it is sent. */
import { buildStorageKey } from "@/lib/publicPath";

export interface Draft {
  text: string;
  /** The text with which the form began: a draft that equals it has no changes. */
  origin: string;
  /** Members that were changed in the form, as `joinPath` names them. */
  typed?: readonly string[];
}

const key = (project: string, source: string) =>
  buildStorageKey(`palestra.draft ${project} ${source}`);

export function readDraft(project: string, source: string): Draft | null {
  try {
    const found = JSON.parse(window.sessionStorage.getItem(key(project, source)) ?? "null");
    const isDraft = typeof found?.text === "string" && typeof found?.origin === "string";
    return isDraft ? (found as Draft) : null;
  } catch {
    return null;
  }
}

export function keepDraft(project: string, source: string, draft: Draft): void {
  try {
    window.sessionStorage.setItem(key(project, source), JSON.stringify(draft));
  } catch {
    // A full or forbidden storage loses the draft on a reload, nothing else.
  }
}

export function dropDraft(project: string, source: string): void {
  try {
    window.sessionStorage.removeItem(key(project, source));
  } catch {
    // See above.
  }
}
