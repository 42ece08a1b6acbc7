import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LogTail } from "@/live/logTail";
import { LiveStream, type Scope } from "@/live/stream";

interface Connection {
  url: string;
  headers: Record<string, string>;
  send(text: string): void;
  end(): void;
}

function server() {
  const connections: Connection[] = [];
  const fetch = vi.fn((url: string, init: RequestInit) => {
    const encoder = new TextEncoder();
    let controller: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start(made) {
        controller = made;
      },
    });
    init.signal?.addEventListener("abort", () =>
      controller.error(new DOMException("", "AbortError")),
    );
    connections.push({
      url,
      headers: init.headers as Record<string, string>,
      send: (text) => controller.enqueue(encoder.encode(text)),
      end: () => controller.close(),
    });
    return Promise.resolve(new Response(body));
  });
  return {
    connections,
    stream: new LiveStream({
      fetch: fetch as unknown as typeof globalThis.fetch,
      random: () => 0.5,
    }),
  };
}

const event = (id: number) =>
  `id: ${id}\nevent: run\ndata: ${JSON.stringify({ id, type: "run", data: {} })}\n\n`;
const settle = () => vi.advanceTimersByTimeAsync(0);

function scope(after: number | null) {
  const seen: number[] = [];
  const onResync = vi.fn();
  const made: Scope = {
    project: null,
    filter: { run: "r" },
    after,
    onEvents: (events) => seen.push(...events.map((one) => one.id)),
    onResync,
  };
  return { made, seen, onResync };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("live stream", () => {
  it("follows from the cursor, resumes after a break, and delivers no event twice", async () => {
    const { connections, stream } = server();
    const { made, seen } = scope(5);
    stream.open(made);
    await settle();
    expect(connections[0]?.url).toBe("/api/v1/events?run=r&after=5");
    connections[0]?.send(event(6) + event(7));
    await settle();
    expect(stream.status().state).toBe("live");
    connections[0]?.end();
    await settle();
    expect(stream.status().state).toBe("reconnecting");
    await vi.advanceTimersByTimeAsync(1000);
    expect(connections[1]?.headers["last-event-id"]).toBe("7");
    connections[1]?.send(event(7) + event(8));
    await settle();
    expect(seen).toEqual([6, 7, 8]);
    stream.close();
  });

  it("requests a new history when events after the cursor are gone", async () => {
    const { connections, stream } = server();
    const { made, onResync } = scope(1);
    stream.open(made);
    await settle();
    connections[0]?.send("event: resync\ndata: {}\n\n");
    await settle();
    expect(onResync).toHaveBeenCalledOnce();
    stream.close();
  });

  it("reconnects when the server sends nothing for 40 s", async () => {
    const { connections, stream } = server();
    stream.open(scope(1).made);
    await settle();
    await vi.advanceTimersByTimeAsync(45_000);
    expect(connections.length).toBe(2);
    stream.close();
  });

  it("does not connect while paused and resumes from the same cursor", async () => {
    const { connections, stream } = server();
    const { made, seen } = scope(1);
    stream.open(made);
    await settle();
    connections[0]?.send(event(2));
    await settle();
    stream.pause();
    expect(stream.status().state).toBe("paused");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(connections.length).toBe(1);
    stream.resume();
    await settle();
    expect(connections[1]?.url).toContain("after=2");
    expect(seen).toEqual([2]);
    stream.close();
  });
});

describe("log tail", () => {
  const line = (n: number) => ({
    n,
    attempt_id: "a",
    stream: "stdout" as const,
    wall: 0,
    text: String(n),
  });

  it("reads stored lines, appends new ones, fills a gap, and repeats no line", async () => {
    const stored = [1, 2, 3].map(line);
    vi.stubGlobal("fetch", (url: string) => {
      const after = Number(new URL(url, "http://x").searchParams.get("after"));
      const lines = stored.filter((one) => one.n > after).slice(0, 2);
      const complete = stored.every((one) => one.n <= (lines.at(-1)?.n ?? after));
      return Promise.resolve(
        new Response(JSON.stringify({ run_id: "r", lines, next_after: 0, complete })),
      );
    });
    const tail = new LogTail("r");
    const numbers = () => tail.state().lines.map((one) => one.n);
    tail.open();
    await settle();
    await settle();
    expect(numbers()).toEqual([1, 2, 3]);
    tail.append({ run_id: "r", lines: [line(3), line(4)], next_after: 4, complete: true });
    expect(numbers()).toEqual([1, 2, 3, 4]);
    stored.push(line(4), line(5), line(6));
    tail.append({ run_id: "r", lines: [line(6)], next_after: 6, complete: true });
    await settle();
    expect(numbers()).toEqual([1, 2, 3, 4, 5, 6]);
    vi.unstubAllGlobals();
  });
});
