import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LogLine, LogPage } from "@/api/types";
import type { Subscription, ToTab } from "@/live/connectionTypes";
import { LogTail } from "@/live/logTail";
import { PortServer } from "@/live/portServer";
import { SharedConnection } from "@/live/sharedConnection";
import { LiveStream, type Scope } from "@/live/stream";
import { makeOwnPort } from "@/live/tabPort";

interface Connection {
  path: string;
  body: { subscriptions: Subscription[]; wait?: number };
  isOpen: boolean;
  send(text: string): void;
  end(): void;
}

function server() {
  const connections: Connection[] = [];
  const fetch = vi.fn((path: string, init: RequestInit) => {
    const encoder = new TextEncoder();
    let controller: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start(made) {
        controller = made;
      },
    });
    const connection = {
      path,
      body: JSON.parse(String(init.body)) as Connection["body"],
      isOpen: true,
      send: (text: string) => controller.enqueue(encoder.encode(text)),
      end: () => controller.close(),
    };
    init.signal?.addEventListener("abort", () => {
      connection.isOpen = false;
      controller.error(new DOMException("", "AbortError"));
    });
    connections.push(connection);
    return Promise.resolve(new Response(body));
  });
  const transport = { fetch: fetch as unknown as typeof globalThis.fetch, random: () => 0.5 };
  return { connections, transport, stream: new LiveStream(makeOwnPort(transport)) };
}

/** Two tabs and the worker between them. */
function browser() {
  const { connections, transport } = server();
  const worker = new PortServer(new SharedConnection(transport));
  const openTab = () => {
    const stream = new LiveStream((onMessage) => {
      const port = {
        onmessage: null as ((event: MessageEvent) => void) | null,
        postMessage: (message: unknown) => onMessage(message as ToTab),
      };
      worker.serve(port);
      return { send: (data) => port.onmessage?.(new MessageEvent("message", { data })) };
    });
    return stream;
  };
  return { connections, worker, first: openTab(), second: openTab() };
}

const event = (id: number, numbers = "0") =>
  `id: ${id}\nevent: run\ndata: ${numbers}\n` +
  `data: ${JSON.stringify({ id, type: "run", data: {} })}\n\n`;
const settle = () => vi.advanceTimersByTimeAsync(50);
const newest = (connections: Connection[]) => connections.at(-1) as Connection;
const cursors = (connection: Connection) => connection.body.subscriptions.map((one) => one.after);

function scope(after: number | null, run = "r") {
  const seen: number[] = [];
  const onResync = vi.fn();
  const made: Scope = {
    project: null,
    filter: { run },
    after,
    onEvents: (events) => seen.push(...events.map((one) => one.id)),
    onResync,
  };
  return { made, seen, onResync };
}

beforeEach(() => void vi.useFakeTimers());

describe("live stream", () => {
  it("follows from the cursor, resumes after a break, and delivers no event twice", async () => {
    const { connections, stream } = server();
    const { made, seen } = scope(5);
    stream.open(made);
    await settle();
    expect(connections[0]?.path).toBe("/api/v1/events:stream");
    expect(connections[0]?.body.subscriptions).toEqual([
      { project: null, runs: ["r"], experiments: [], types: [], after: 5 },
    ]);
    connections[0]?.send(event(6) + event(7));
    await settle();
    expect(stream.status().state).toBe("live");
    connections[0]?.end();
    await settle();
    expect(stream.status().state).toBe("reconnecting");
    await vi.advanceTimersByTimeAsync(1000);
    expect(cursors(newest(connections))).toEqual([7]);
    connections[1]?.send(event(7) + event(8));
    await settle();
    expect(seen).toEqual([6, 7, 8]);
  });

  it("requests a new history when events after the cursor are gone", async () => {
    const { connections, stream } = server();
    const { made, onResync } = scope(1);
    stream.open(made);
    await settle();
    connections[0]?.send("event: resync\ndata: 0\ndata: {}\n\n");
    await settle();
    expect(onResync).toHaveBeenCalledOnce();
  });

  it("requests a new history when it begins without a cursor, and only then", async () => {
    const { connections, stream } = server();
    const [without, known] = [scope(null, "a"), scope(5, "b")];
    stream.open(without.made);
    stream.open(known.made);
    await settle();
    expect(without.onResync).not.toHaveBeenCalled();
    for (const reached of [7, 9])
      connections[0]?.send(`event: cursors\ndata: [${reached}, ${reached}]\n\n`);
    await settle();
    expect(without.onResync).toHaveBeenCalledOnce();
    expect(known.onResync).not.toHaveBeenCalled();
    connections[0]?.send(event(10, "0,1"));
    await settle();
    expect([without.seen, known.seen]).toEqual([[10], [10]]);
  });

  it("reconnects when the server sends nothing for 40 s", async () => {
    const { connections, stream } = server();
    stream.open(scope(1).made);
    await settle();
    connections[0]?.send("retry: 1000\n\n");
    await vi.advanceTimersByTimeAsync(45_000);
    expect(connections.map((one) => one.path)).toEqual([
      "/api/v1/events:stream",
      "/api/v1/events:stream",
    ]);
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
    expect(connections[0]?.isOpen).toBe(false);
    stream.resume();
    await settle();
    expect(cursors(newest(connections))).toEqual([2]);
    expect(seen).toEqual([2]);
  });

  it("uses long polls where the bytes of a stream do not get through", async () => {
    const { connections, stream } = server();
    const { made, seen } = scope(5);
    stream.open(made);
    await vi.advanceTimersByTimeAsync(17_000);
    const [, poll] = connections;
    expect([poll?.path, poll?.body.wait, cursors(poll as Connection)]).toEqual([
      "/api/v1/events:poll",
      0,
      [5],
    ]);
    const events = [{ subscriptions: [0], event: { id: 6, type: "run", data: {} } }];
    poll?.send(JSON.stringify({ events, cursors: [9], resync: [] }));
    poll?.end();
    await settle();
    expect(seen).toEqual([6]);
    expect(stream.status().state).toBe("live");
    expect([newest(connections).body.wait, cursors(newest(connections))]).toEqual([25, [9]]);
    const unanswered = newest(connections);
    await vi.advanceTimersByTimeAsync(45_000);
    expect(unanswered.isOpen).toBe(false);
    expect([newest(connections).body.wait, cursors(newest(connections))]).toEqual([0, [9]]);
  });
});

describe("two tabs of a browser", () => {
  it("share one connection, on which each scope has its own cursor", async () => {
    const { connections, first, second } = browser();
    const [one, other] = [scope(5, "a"), scope(2, "b")];
    first.open(one.made);
    await settle();
    connections[0]?.send(`event: cursors\ndata: [5]\n\n${event(7)}`);
    await settle();
    second.open(other.made);
    await settle();
    expect(connections.filter((connection) => connection.isOpen)).toHaveLength(1);
    expect(cursors(newest(connections))).toEqual([7, 2]);
    newest(connections).send(event(3, "1") + event(8, "0,1") + event(9));
    await settle();
    expect([one.seen, other.seen]).toEqual([
      [7, 8, 9],
      [3, 8],
    ]);
    expect(second.status().state).toBe("live");
  });

  it("go on without a gap when the first one is closed", async () => {
    const { connections, first, second } = browser();
    const [one, other] = [scope(0, "a"), scope(0, "b")];
    first.open(one.made);
    second.open(other.made);
    await settle();
    newest(connections).send(event(1, "0,1"));
    await settle();
    first.leave();
    await settle();
    expect(connections.filter((connection) => connection.isOpen)).toHaveLength(1);
    expect(newest(connections).body.subscriptions.map((found) => found.runs)).toEqual([["b"]]);
    expect(cursors(newest(connections))).toEqual([1]);
    newest(connections).send(event(1) + event(2));
    await settle();
    expect([one.seen, other.seen]).toEqual([[1], [1, 2]]);
  });

  it("take a second connection where they follow more than one may carry", async () => {
    const { connections, first, second } = browser();
    const scopes = Array.from({ length: 70 }, (_, number) => scope(number, `r${number}`));
    scopes.forEach(({ made }, number) => void (number % 2 ? first : second).open(made));
    await settle();
    expect(connections.map((one) => one.body.subscriptions.length)).toEqual([64, 6]);
    const runs = connections.map((one) => one.body.subscriptions.map(({ runs: [run] }) => run));
    expect(new Set(runs.flat()).size).toBe(70);
    connections[1]?.send(event(100, "5"));
    await settle();
    const reader = scopes[Number(runs[1]?.[5]?.slice(1))];
    expect(reader?.seen).toEqual([100]);
    expect(scopes.flatMap(({ seen }) => seen)).toEqual([100]);
    connections[1]?.end();
    await vi.advanceTimersByTimeAsync(2000);
    expect(connections).toHaveLength(3);
    expect(connections[0]?.isOpen).toBe(true);
    expect(newest(connections).body.subscriptions).toHaveLength(6);
    expect(cursors(newest(connections))[5]).toBe(100);
  });

  it("are dropped when they crash, and join again when they were only frozen", async () => {
    const { connections, worker, first } = browser();
    const { made, seen } = scope(0);
    first.open(made);
    await settle();
    newest(connections).send(event(4));
    await settle();
    vi.setSystemTime(Date.now() + 300_000);
    worker.dropSilent();
    await settle();
    expect(cursors(newest(connections))).toEqual([4]);
    newest(connections).send(event(4) + event(5));
    await settle();
    expect(seen).toEqual([4, 5]);
  });

  it("keep their updates when the project of one is gone", async () => {
    const refused = { errors: [{ pointer: "/subscriptions/0/project", message: "x" }] };
    const bodies: string[] = [];
    const connection = new SharedConnection({
      fetch: (_path, init) => {
        bodies.push(String(init?.body));
        const answer =
          bodies.length === 1
            ? new Response(JSON.stringify(refused), { status: 404 })
            : new Response(new ReadableStream());
        return Promise.resolve(answer);
      },
      random: () => 0.5,
    });
    const base = { runs: [], experiments: [], types: [], after: 0 };
    const silent = { onEvents: () => undefined, onResync: () => undefined };
    connection.follow({ subscription: { ...base, project: "gone" }, ...silent });
    connection.follow({ subscription: { ...base, project: "kept" }, ...silent });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).not.toContain("gone");
    expect(bodies[1]).toContain("kept");
  });
});

describe("log tail", () => {
  const openLine = (text: string) => ({
    attempt_id: "a",
    stream: "stdout" as const,
    wall: 0,
    text,
  });
  const line = (n: number) => ({ ...openLine(String(n)), n });
  const page = (lines: LogLine[], next_after: number, ...openTexts: string[]): LogPage => ({
    run_id: "r",
    lines,
    next_after,
    complete: true,
    open_lines: openTexts.map(openLine),
  });
  const numbers = (tail: LogTail) => tail.state().lines.map((one) => one.n);
  const openTexts = (tail: LogTail) => tail.state().openLines.map((one) => one.text);

  it("reads stored lines, appends new ones, fills a gap, and repeats no line", async () => {
    const stored = [1, 2, 3].map(line);
    vi.stubGlobal("fetch", (url: string) => {
      const after = Number(new URL(url, "http://x").searchParams.get("after"));
      const lines = stored.filter((one) => one.n > after).slice(0, 2);
      const last = lines.at(-1)?.n ?? after;
      const complete = stored.every((one) => one.n <= last);
      return Promise.resolve(new Response(JSON.stringify({ ...page(lines, last), complete })));
    });
    const tail = new LogTail("r");
    tail.open();
    await settle();
    await settle();
    expect(numbers(tail)).toEqual([1, 2, 3]);
    tail.append(page([line(3), line(4)], 4));
    expect(numbers(tail)).toEqual([1, 2, 3, 4]);
    stored.push(line(4), line(5), line(6));
    tail.append(page([line(6)], 6));
    await settle();
    expect(numbers(tail)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("replaces open lines by their newest text, until they are complete", async () => {
    vi.stubGlobal("fetch", () =>
      Promise.resolve(new Response(JSON.stringify(page([line(1)], 1, "10%")))),
    );
    const tail = new LogTail("r");
    tail.open();
    await settle();
    expect([numbers(tail), openTexts(tail)]).toEqual([[1], ["10%"]]);
    tail.append(page([], 1, "outer", "20%"));
    expect([numbers(tail), openTexts(tail)]).toEqual([[1], ["outer", "20%"]]);
    tail.append(page([line(2)], 2, "30%"));
    expect([numbers(tail), openTexts(tail)]).toEqual([[1, 2], ["30%"]]);
    tail.append(page([line(3)], 3));
    expect([numbers(tail), openTexts(tail)]).toEqual([[1, 2, 3], []]);
  });

  it("reads the lines that an event of open lines shows as missing", async () => {
    let stored = page([line(1)], 1);
    vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(stored))));
    const tail = new LogTail("r");
    tail.open();
    await settle();
    stored = page([line(2)], 2, "50%");
    tail.append(page([], 2, "40%"));
    await settle();
    expect([numbers(tail), openTexts(tail)]).toEqual([[1, 2], ["50%"]]);
  });

  it("shows what arrives while stored lines are read", async () => {
    let answer = (_: Response) => {};
    vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (answer = resolve)));
    const tail = new LogTail("r");
    tail.open();
    tail.append(page([line(2)], 2, "50%"));
    tail.append(page([], 2, "60%"));
    answer(new Response(JSON.stringify(page([line(1), line(2)], 2, "40%"))));
    await settle();
    expect([numbers(tail), openTexts(tail)]).toEqual([[1, 2], ["60%"]]);
  });
});
