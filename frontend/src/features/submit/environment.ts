/**
 * What a submission says about one environment only. It leaves with the environment unless the user
 * typed it. In supervised training the input function has the part of the environment.
 */
import { isEqual } from "./schema";
import { changeMember, type Path, readMember, readText } from "./text";

/** A member that belongs to the environment of the text with which the form began. */
export interface BoundMember {
  path: Path;
  value: unknown;
}

/** The state of a form as far as its environment is concerned. */
export interface EnvironmentState {
  /** The text with which the form began. */
  origin: string;
  text: string;
  /** Members that the user changed in the form, as `joinPath` names them. */
  typed: ReadonlySet<string>;
}

const NAME = ["definition", "name"] as const;
const IDS: readonly Path[] = [
  ["definition", "env", "id"],
  ["definition", "train_input", "name"],
];
const BOUND: readonly Path[] = [
  ["definition", "notes"],
  ["definition", "env", "kwargs"],
  ["definition", "env", "max_episode_steps"],
  ["definition", "env", "preprocessing"],
  ["definition", "train_input", "params"],
  ["definition", "evaluation", "max_episode_steps"],
  ["definition", "stop", "success_score"],
];
const MAX_NAME = 64;

export function joinPath(path: Path): string {
  return path.join("/");
}

/** Whether a path is that of the environment's ID, or of the input function's name. */
export function isEnvironmentId(path: Path): boolean {
  return IDS.some((one) => isEqual(one, path));
}

/** The ID of the environment, or the name of the input function, of a document. */
export function readEnvironment(document: unknown): string | null {
  const id = IDS.map((path) => readMember(document, path)).find((one) => one !== undefined);
  return typeof id === "string" ? id : null;
}

/** Returns the text with another environment, without what belongs to the former one. */
export function changeEnvironment(state: EnvironmentState, path: Path, id: unknown): string {
  const origin = readText(state.origin).document;
  const own = readEnvironment(origin);
  const former = readEnvironment(readText(state.text).document);
  let text = changeMember(state.text, path, id);
  if (origin === null || own === null || former === null) return text;
  const next = typeof id === "string" ? id : "";
  const name = readMember(origin, NAME);
  if (typeof name === "string") {
    const present = readMember(readText(text).document, NAME);
    if (!state.typed.has(joinPath(NAME)) && present === renameFor(name, own, former))
      text = changeMember(text, NAME, renameFor(name, own, next));
  }
  if (next === own) return putBack({ ...state, text });
  for (const { path: bound } of listStaying({ ...state, text }))
    text = changeMember(text, bound, undefined);
  const head = readHead(state.origin);
  return head !== "" && text.startsWith(head) ? text.slice(head.length) : text;
}

/** The members that left the text with the environment to which they belong. */
export function listLeft(state: EnvironmentState): BoundMember[] {
  return listBound(state).filter(
    ({ path, present }) => present === undefined && !isTyped(state, path),
  );
}

/** The members of the former environment that are in the text though it has another one. */
export function listStaying(state: EnvironmentState): BoundMember[] {
  return listBound(state).filter(
    ({ path, value, present }) => isEqual(present, value) && !isTyped(state, path),
  );
}

/** Returns the text with the members that had left. */
export function putBack(state: EnvironmentState): string {
  const origin = readText(state.origin).document;
  let { text } = state;
  for (const path of BOUND) {
    const value = readMember(origin, path);
    const isMissing = readMember(readText(text).document, path) === undefined;
    if (value !== undefined && isMissing && !isTyped(state, path))
      text = changeMember(text, path, value);
  }
  const isOwn = readEnvironment(readText(text).document) === readEnvironment(origin);
  const head = readHead(state.origin);
  return isOwn && !text.startsWith(head) ? head + text : text;
}

/** Returns the text without the members of the former environment. */
export function removeStaying(state: EnvironmentState): string {
  return listStaying(state).reduce(
    (text, { path }) => changeMember(text, path, undefined),
    state.text,
  );
}

/**
 * Returns the name of a submission for another environment: `CartPole PPO` on `Pendulum-v1` is
 * `Pendulum PPO`. A name that does not mention its environment stays.
 */
export function renameFor(name: string, own: string, next: string): string {
  const [from, to] = [shortenId(own), shortenId(next)];
  return from === "" || to === "" ? name : name.replaceAll(from, to).slice(0, MAX_NAME);
}

/** The name of an environment without its namespace and version. */
function shortenId(id: string): string {
  return (id.split(/[/:]/).at(-1) ?? "").replace(/-v\d+$/, "");
}

/**
 * Returns a definition with the environment of another one: what the other says about it comes
 * with it, and what the first says about its own leaves.
 */
export function replaceEnvironment(definition: object, other: object): object {
  const documents = [{ definition }, { definition: other }] as const;
  const [own, next] = documents.map(readEnvironment);
  // Notes are about the other experiment, not about its environment.
  const taken = [["definition", "env"], ...BOUND].reduce<object>(
    (document, path) =>
      replaceMember(
        document,
        path,
        path.at(-1) === "notes" ? undefined : readMember(documents[1], path),
      ),
    documents[0],
  );
  const name = readMember(taken, NAME);
  const renamed =
    typeof name === "string" && own && next
      ? replaceMember(taken, NAME, renameFor(name, own, next))
      : taken;
  return readMember(renamed, ["definition"]) as object;
}

/** Returns an object with one member replaced; `undefined` removes it. */
function replaceMember(object: object, path: Path, value: unknown): object {
  const [name = "", ...rest] = path;
  const { [name]: former, ...others } = object as Record<string | number, unknown>;
  if (rest.length === 0) return value === undefined ? others : { ...object, [name]: value };
  if (former === undefined && value === undefined) return object;
  return { ...object, [name]: replaceMember((former as object | null) ?? {}, rest, value) };
}

function listBound(state: EnvironmentState): (BoundMember & { present: unknown })[] {
  const origin = readText(state.origin).document;
  const { document } = readText(state.text);
  if (origin === null || document === null) return [];
  if (readEnvironment(document) === readEnvironment(origin)) return [];
  return BOUND.flatMap((path) => {
    const value = readMember(origin, path);
    return value === undefined || value === null || value === ""
      ? []
      : [{ path, value, present: readMember(document, path) }];
  });
}

function isTyped({ typed }: EnvironmentState, path: Path): boolean {
  const own = joinPath(path);
  return [...typed].some((one) => one === own || one.startsWith(`${own}/`));
}

/** The comment at the head of a text, which describes the submission. */
function readHead(text: string): string {
  return /^(?:#[^\n]*\n)+/.exec(text)?.[0] ?? "";
}
