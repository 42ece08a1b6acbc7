/**
 * Requests to the server: same origin, cookie login, CSRF header on changes, problem details as
 * errors.
 */
import type { Problem } from "./types";

const BASE = "/api/v1";

/** A request that the server refused or failed, or that did not reach it (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly errors: readonly { pointer: string; message: string }[];

  constructor(problem: Partial<Problem> & { status: number }) {
    super(problem.detail ?? problem.title ?? "The request failed.");
    this.name = "ApiError";
    this.status = problem.status;
    this.code = problem.code ?? "unknown";
    this.requestId = problem.request_id ?? null;
    this.errors = problem.errors ?? [];
  }
}

/**
 * Whether a request was refused because the code differs from the experiment's, which the user may
 * allow.
 */
export function isCodeChange(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "code_changed";
}

/** What the server says about one member of a request, to be shown at its field. */
export function faultAt(error: unknown, pointer: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.errors.find((one) => one.pointer === pointer)?.message;
}

/** The message of a refused request, unless one of the fields that a form has shows it. */
export function faultBeside(error: unknown, fields: readonly string[]): string | null {
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

type Scalar = string | number | boolean | null | undefined;
export type Parameters = Record<string, Scalar | readonly string[]>;

/** The URL of a route below `/api/v1`, without empty parameters. */
export function address(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    const values: readonly Scalar[] = Array.isArray(value) ? value : [value as Scalar];
    for (const one of values)
      if (one !== null && one !== undefined && one !== "") query.append(name, String(one));
  }
  const text = query.toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

async function problemOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id");
  try {
    const body = (await response.json()) as Partial<Problem>;
    return new ApiError({ request_id: requestId ?? "", ...body, status: response.status });
  } catch {
    const detail = `The server answered ${response.status} without an explanation.`;
    return new ApiError({ status: response.status, detail, request_id: requestId ?? "" });
  }
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

/** GET, JSON. */
export async function get<Answer>(
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await send(address(path, parameters), {
    headers: { accept: "application/json" },
    signal: signal ?? null,
  });
  if (!response.ok) throw await problemOf(response);
  return (await response.json()) as Answer;
}

function changeRequest(method: string): RequestInit & { headers: Record<string, string> } {
  const headers: Record<string, string> = { accept: "application/json" };
  if (csrfToken !== null) headers["x-csrf-token"] = csrfToken;
  return { method, headers };
}

/** POST, JSON both ways; `undefined` for an empty answer. */
export function post<Answer>(path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
  return change("POST", path, body, signal);
}

/** PUT, JSON both ways. */
export function put<Answer>(path: string, body: unknown): Promise<Answer> {
  return change("PUT", path, body);
}

/** PATCH, JSON both ways. */
export function patch<Answer>(path: string, body: unknown): Promise<Answer> {
  return change("PATCH", path, body);
}

/** DELETE with a JSON answer. */
export function removeFor<Answer>(path: string): Promise<Answer> {
  return change("DELETE", path);
}

async function change<Answer>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  const init: RequestInit & { headers: Record<string, string> } = {
    ...changeRequest(method),
    signal: signal ?? null,
  };
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  const response = await send(address(path), init);
  if (!response.ok) throw await problemOf(response);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as Answer;
}

/** DELETE. */
export async function remove(path: string, parameters: Parameters = {}): Promise<void> {
  const response = await send(address(path, parameters), changeRequest("DELETE"));
  if (!response.ok) throw await problemOf(response);
}
