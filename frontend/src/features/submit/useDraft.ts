import { useDebouncedCallback, useDidUpdate } from "@mantine/hooks";
import { useEffect, useMemo, useState } from "react";
import { dropDraft, keepDraft, readDraft } from "./draft";
import { changeEnvironment, isEnvironmentId, joinPath } from "./environment";
import { changeMember, type Path, type Reading, readText } from "./text";

export interface DraftState {
  text: string;
  /** The text with which the form began. */
  origin: string;
  /** Members that were changed in the form, as `joinPath` names them. */
  typed: ReadonlySet<string>;
  reading: Reading;
  /** The newest document that could be read. */
  document: Record<string, unknown>;
  isChanged: boolean;
  /** The text is that of an earlier visit. */
  isRestored: boolean;
  /** Replaces the text; members that are named count as changed in the form. */
  write(text: string, typed?: readonly Path[]): void;
  /** Begins again from another text, which counts as unchanged; `draft` brings back its changes. */
  restart(origin: string, draft?: Pick<DraftState, "text" | "typed">): void;
  change(path: Path, value: unknown): void;
  drop(): void;
}

/** Holds the text of a submission and keeps it over a reload of the page. */
export function useDraft(project: string, source: string, start: string): DraftState {
  const [kept] = useState(() => readDraft(project, source));
  const [text, setText] = useState(kept?.text ?? start);
  const [origin, setOrigin] = useState(kept?.origin ?? start);
  const [typed, setTyped] = useState<ReadonlySet<string>>(new Set(kept?.typed));
  const [isRestored, setRestored] = useState(kept !== null);
  const reading = useMemo(() => readText(text), [text]);
  const [document, setDocument] = useState<Record<string, unknown>>(reading.document ?? {});
  // The form goes on showing what could be read while the text cannot.
  useEffect(() => {
    if (reading.document !== null) setDocument(reading.document);
  }, [reading]);
  const isChanged = text !== origin;
  const store = useDebouncedCallback(() => {
    if (isChanged) keepDraft(project, source, { text, origin, typed: [...typed] });
    else dropDraft(project, source);
  }, 200);
  useDidUpdate(store, [text, origin]);
  useWarning(isChanged);
  return {
    text,
    origin,
    typed,
    reading,
    document: reading.document ?? document,
    isChanged,
    isRestored: isRestored && isChanged,
    write: (next, paths = []) => {
      setText(next);
      setTyped((before) => new Set([...before, ...paths.map(joinPath)]));
    },
    restart: (next, former) => {
      setOrigin(next);
      setText(former?.text ?? next);
      setTyped(former?.typed ?? new Set());
      setRestored(false);
    },
    change: (path, value) => {
      setText((before) =>
        isEnvironmentId(path)
          ? changeEnvironment({ text: before, origin, typed }, path, value)
          : changeMember(before, path, value),
      );
      setTyped((before) => new Set([...before, joinPath(path)]));
    },
    drop: () => {
      store.cancel();
      dropDraft(project, source);
      setOrigin(text);
    },
  };
}

/** Has the browser ask before a tab with changes is closed. */
function useWarning(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return undefined;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isChanged]);
}
