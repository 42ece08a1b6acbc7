/** Requests that the server refuses because they are too many (429). */
import { QueryObserver } from "@tanstack/react-query";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { archive } from "@/api/actions";
import { ApiError, get } from "@/api/client";
import { querySeries, runQuery } from "@/api/queries";
import { makeQueryClient } from "@/app/queryClient";
import { isTransient, readRetryAfter } from "@/lib/outage";
import { LiveStream } from "@/live/stream";
import { makeOwnPort } from "@/live/tabPort";

const LIMIT = {
  code: "too_many_requests",
  detail: "Too many requests with this token or login. Try again in 2 s.",
};
const refused = (headers: Record<string, string>, body: string = JSON.stringify(LIMIT)) =>
  new Response(body, { status: 429, headers });

let answers: Response[];
const asked = vi.fn((_url: string, init: RequestInit) =>
  init.signal?.aborted
    ? Promise.reject(new DOMException("", "AbortError"))
    : Promise.resolve(answers.shift() ?? new Response('{"id": "run_1"}')),
);
const seconds = (number: number) => vi.advanceTimersByTimeAsync(number * 1_000);

beforeEach(() => {
  vi.useFakeTimers();
  answers = [];
  asked.mockClear();
  vi.stubGlobal("fetch", asked);
});

describe("a request that reads", () => {
  it.each([
    ["GET", () => get("/runs/run_1")],
    ["POST", () => querySeries({} as never)],
  ])("is repeated after the seconds that the server names (%s)", async (_method, read) => {
    answers = [refused({ "retry-after": "2" })];
    const found = read();
    await seconds(1.9);
    expect(asked).toHaveBeenCalledTimes(1);
    await seconds(0.7);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(await found).toEqual({ id: "run_1" });
  });

  it("fails after three tries, and says when the next one may succeed", async () => {
    answers = [1, 1, 4].map((wait) => refused({ "retry-after": String(wait) }));
    const failed = get("/runs/run_1").catch((error: unknown) => error);
    await seconds(3);
    expect(asked).toHaveBeenCalledTimes(3);
    expect(await failed).toMatchObject({ status: 429, retryAfter: 4, message: LIMIT.detail });
  });

  it("is not repeated once nobody waits for it", async () => {
    answers = [refused({ "retry-after": "2" })];
    const abort = new AbortController();
    const failed = get("/runs/run_1", {}, abort.signal).catch((error: unknown) => error);
    await seconds(1);
    abort.abort();
    expect(await failed).toMatchObject({ name: "AbortError" });
    await seconds(10);
    expect(answers).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a query", () => {
  it("is not repeated before the time that the server names", async () => {
    answers = Array.from({ length: 1_000 }, () => refused({ "retry-after": "30" }));
    const observer = new QueryObserver(makeQueryClient(), runQuery("run_1"));
    const leave = observer.subscribe(() => undefined);
    await seconds(29);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(observer.getCurrentResult().failureReason?.message).toBe(LIMIT.detail);
    await seconds(120);
    expect(asked.mock.calls.length).toBeLessThanOrEqual(5);
    answers = [];
    await seconds(60);
    expect(observer.getCurrentResult().data).toEqual({ id: "run_1" });
    leave();
  });
});

describe("a request that changes something", () => {
  const write = () =>
    archive({ project: "lab", id: "cartpole-1" }).catch((error: unknown) => error);

  it("is sent once, and the server's sentence names the seconds", async () => {
    answers = [refused({ "retry-after": "2" })];
    const failed = await write();
    await seconds(60);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(failed).toBeInstanceOf(ApiError);
    expect((failed as ApiError).message).toContain("Try again in 2 s.");
  });

  it.each([
    [{ "retry-after": "7" }, "Too many requests were sent. Try again in 7 s."],
    [{}, "Too many requests were sent. Try again in a moment."],
  ])("names the seconds of a proxy that sends no sentence (%o)", async (headers, sentence) => {
    answers = [refused(headers as Record<string, string>, "<html>")];
    expect(((await write()) as ApiError).message).toBe(sentence);
  });
});

describe("the live stream", () => {
  it("connects again after the time that the server names", async () => {
    answers = [refused({ "retry-after": "5" }), refused({ "retry-after": "5" })];
    const stream = new LiveStream(
      makeOwnPort({ fetch: (...args) => fetch(...args), random: Math.random }),
    );
    const scope = { project: null, filter: {}, after: null };
    const opened = stream.open({ ...scope, onEvents: () => undefined, onResync: () => undefined });
    await seconds(4.9);
    expect(asked).toHaveBeenCalledTimes(1);
    await seconds(1.5);
    expect(asked).toHaveBeenCalledTimes(2);
    opened.close();
  });
});

describe("Retry-After", () => {
  it.each([
    ["3", 3],
    ["Wed, 01 Jan 2031 00:00:10 GMT", 10],
    ["Wed, 01 Jan 2020 00:00:00 GMT", 0],
    ["soon", null],
  ])("%s", (text, wait) => {
    vi.setSystemTime("2031-01-01T00:00:00Z");
    expect(readRetryAfter(new Headers({ "retry-after": text }))).toBe(wait);
  });
});

it.each([
  [503, "database_busy", true],
  [503, "statement_deadline", false],
  [429, "too_many_reads", true],
  [422, "invalid_document", false],
])("a refusal %i %s is transient: %s", (status, code, expected) => {
  expect(isTransient(new ApiError({ status, code }))).toBe(expected);
});
