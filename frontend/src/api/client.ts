/**
 * Requests to the server: same origin, cookie login, CSRF header on changes, problem details as
 * errors.
 */
import { computeWait, readRetryAfter } from "@/lib/outage";
import { pause } from "@/lib/pause";
import { getPublicPath } from "@/lib/publicPath";
import type { Problem } from "./types";

const BASE = "/api/v1";
/** Number of times that a request that reads is sent before the caller gets the error 429. */
const TRIES = 3;
/** Longest wait in seconds without a message; during longer ones the caller shows the reason. */
const LONGEST_SILENT_WAIT = 10;

/**
 * The error of a request that failed or was refused, or that did not reach the server (`status` 0).
 */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly errors: readonly { pointer: string; message: string }[];
  /** Seconds for which the server asked to wait; `null` if it did not. */
  readonly retryAfter: number | null;

  constructor(problem: Partial<Problem> & { status: number }, retryAfter: number | null = null) {
    super(problem.detail ?? problem.title ?? "The request failed.");
    this.name = "ApiError";
    this.status = problem.status;
    this.code = problem.code ?? "unknown";
    this.requestId = problem.request_id ?? null;
    this.errors = problem.errors ?? [];
    this.retryAfter = retryAfter;
  }
}

/** Whether a resource does not exist, or does not exist for the caller (404). */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/**
 * Whether a request was refused because the code differs from the experiment's, which the user may
 * allow.
 */
export function isCodeChange(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "code_changed";
}

/** The server's message about one member of a request, which the member's field shows. */
export function findFaultAt(error: unknown, pointer: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.errors.find((one) => one.pointer === pointer)?.message;
}

/** The message of a refused request; `null` if a field of the form shows it. */
export function findFaultBeside(error: unknown, fields: readonly string[]): string | null {
  if (!(error instanceof Error)) return null;
  const shown =
    error instanceof ApiError && error.errors.some((one) => fields.includes(one.pointer));
  return shown ? null : error.message;
}

let csrfToken: string | null = null;

/** Sets the session's CSRF token, which requests that change something send. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** The session's CSRF token, for requests that are sent elsewhere. */
export function getCsrfToken(): string | null {
  return csrfToken;
}

type Scalar = string | number | boolean | null | undefined;
export type Parameters = Record<string, Scalar | readonly string[]>;

/** The URL of a route below `/api/v1`, without empty parameters. */
export function buildAddress(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    const values: readonly Scalar[] = Array.isArray(value) ? value : [value as Scalar];
    for (const one of values)
      if (one !== null && one !== undefined && one !== "") query.append(name, String(one));
  }
  const text = query.toString();
  return `${getPublicPath()}${BASE}${path}${text ? `?${text}` : ""}`;
}

async function readProblem(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const requestId = headers.get("x-request-id") ?? "";
  const wait = readRetryAfter(headers);
  try {
    const body = (await response.json()) as Partial<Problem>;
    return new ApiError({ request_id: requestId, ...body, status }, wait);
  } catch {
    return new ApiError(
      { status, detail: describeUnexplained(status, wait), request_id: requestId },
      wait,
    );
  }
}

/** The message for an error response without problem details, for example of a proxy. */
function describeUnexplained(status: number, wait: number | null): string {
  if (status === 413)
    return "A proxy before the server refuses so large a request (413): raise its limit, for nginx client_max_body_size.";
  if (status !== 429) return `The server answered ${status} without an explanation.`;
  const when = wait === null ? "in a moment" : `in ${Math.ceil(wait)} s`;
  return `Too many requests were sent. Try again ${when}.`;
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({
      status: 0,
      code: "unreachable",
      detail: "The server cannot be reached. Is `palestra up` running?",
    });
  }
}

/** Sends a request that only reads, and repeats it when the server limits the rate (429). */
async function ask(url: string, init: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const response = await send(url, init);
    const wait = readRetryAfter(response.headers);
    if (response.status !== 429 || wait === null || wait > LONGEST_SILENT_WAIT) return response;
    if (tries === TRIES) return response;
    await pause(computeWait(wait), init.signal);
  }
}

/** Sends a GET; returns the JSON answer. */
export async function get<Answer>(
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await ask(buildAddress(path, parameters), {
    headers: { accept: "application/json" },
    signal: signal ?? null,
  });
  return readAnswer(response);
}

/** Sends a GET; returns the text of the answer. */
export async function getText(
  path: string,
  parameters: Parameters,
  signal?: AbortSignal,
): Promise<string> {
  const response = await ask(buildAddress(path, parameters), { signal: signal ?? null });
  if (!response.ok) throw await readProblem(response);
  return response.text();
}

function changeRequest(method: string): RequestInit & { headers: Record<string, string> } {
  const headers: Record<string, string> = { accept: "application/json" };
  if (csrfToken !== null) headers["x-csrf-token"] = csrfToken;
  return { method, headers };
}

/** Sends a POST with a JSON body; returns the JSON answer, `undefined` if it is empty. */
export function post<Answer>(
  path: string,
  body?: unknown,
  parameters: Parameters = {},
): Promise<Answer> {
  return change("POST", path, body, parameters);
}

/** A POST that only reads; its query is too long for a URL. */
export async function postQuery<Answer>(
  path: string,
  body: unknown,
  signal?: AbortSignal,
  parameters: Parameters = {},
): Promise<Answer> {
  const init = { ...withBody(changeRequest("POST"), body), signal: signal ?? null };
  return readAnswer(await ask(buildAddress(path, parameters), init));
}

/** Sends a PUT with a JSON body; returns the JSON answer. */
export function put<Answer>(path: string, body: unknown): Promise<Answer> {
  return change("PUT", path, body);
}

/** Sends a PATCH with a JSON body; returns the JSON answer. */
export function patch<Answer>(
  path: string,
  body: unknown,
  parameters: Parameters = {},
): Promise<Answer> {
  return change("PATCH", path, body, parameters);
}

/** Sends a DELETE; returns the JSON answer. */
export function removeWithAnswer<Answer>(path: string): Promise<Answer> {
  return change("DELETE", path);
}

async function change<Answer>(
  method: string,
  path: string,
  body?: unknown,
  parameters: Parameters = {},
): Promise<Answer> {
  const url = buildAddress(path, parameters);
  return readAnswer(await send(url, withBody(changeRequest(method), body)));
}

function withBody(init: ReturnType<typeof changeRequest>, body: unknown): RequestInit {
  if (body === undefined) return init;
  const headers = { ...init.headers, "content-type": "application/json" };
  return { ...init, headers, body: JSON.stringify(body) };
}

async function readAnswer<Answer>(response: Response): Promise<Answer> {
  if (!response.ok) throw await readProblem(response);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as Answer;
}

/** Sends a DELETE that has an empty answer. */
export async function remove(path: string, parameters: Parameters = {}): Promise<void> {
  const response = await send(buildAddress(path, parameters), changeRequest("DELETE"));
  if (!response.ok) throw await readProblem(response);
}
