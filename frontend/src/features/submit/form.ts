/** What the fields of the form share. */
import { createContext, useContext } from "react";
import type { Catalogue } from "@/api/types";
import type { BoundMember } from "./environment";
import type { Fault } from "./faults";
import type { Schema } from "./schema";
import { type Path, readMember } from "./text";

export interface Form {
  root: Schema;
  document: Record<string, unknown>;
  faults: readonly Fault[];
  /** The form cannot be changed, since the YAML cannot be read. */
  isFrozen: boolean;
  /** What the workers of the chosen pool offer; `null` if none has registered. */
  catalogue: Catalogue["catalogue"] | null;
  change(path: Path, value: unknown): void;
  environment: FormerEnvironment;
}

/** What the form has to do with the environment with which it began. */
export interface FormerEnvironment {
  /** The ID of that environment. */
  name: string;
  /** Members that left with it. */
  left: readonly BoundMember[];
  /** Members that are still in the form though it has another environment. */
  staying: readonly BoundMember[];
  putBack(): void;
  removeStaying(): void;
}

export const FormContext = createContext<Form | null>(null);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === null) throw new Error("A field of the form lies outside of it.");
  return form;
}

/** The value of a member, and how to change it. */
export function useMember(path: Path): [unknown, (value: unknown) => void] {
  const { document, change } = useForm();
  return [readMember(document, path), (value) => change(path, value)];
}

const WORDS: Readonly<Record<string, string>> = {
  cpu: "CPU",
  gae: "GAE",
  gpus: "GPUs",
  id: "ID",
  mib: "(MiB)",
};

/** Labels of members whose names say too little beside those of other sections. */
const LABELS: Readonly<Record<string, string>> = {
  "evaluation.every_env_steps": "Evaluate every (env steps)",
  "evaluation.every_updates": "Evaluate every (updates)",
  "evaluation.episodes": "Episodes per evaluation",
  "snapshot.every_env_steps": "Save every (env steps)",
  "snapshot.every_updates": "Save every (updates)",
  "export.formats": "Export formats",
  "options.after": "After the jobs",
  "options.on": "After they",
  "options.then": "Then",
  "loop.env_steps": "Budget in env steps",
  "loop.updates": "Budget in updates",
  "loop.episodes": "Budget in episodes",
};

/** Returns the label of the field of a member. */
export function labelMember(path: Path): string {
  return LABELS[path.slice(-2).join(".")] ?? nameMember(String(path.at(-1)));
}

/** Returns a name for readers: `cpu_threads` is `CPU threads`. */
export function nameMember(name: string): string {
  const words = name.split("_").map((word) => WORDS[word] ?? word);
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Writes a value for a placeholder. */
export function showValue(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(String).join(", ");
  if (typeof value === "object") return "";
  return String(value);
}

/** Writes the default of a field where it is not set. */
export function showFallback(fallback: unknown): string {
  return fallback === undefined ? "" : showValue(fallback);
}
