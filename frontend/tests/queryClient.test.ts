import { type QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { makeQueryClient, repeatAfterOutages } from "@/app/queryClient";
import type { LiveStream, StreamState } from "@/live/stream";

const queryKey: readonly unknown[] = ["list"];
const client: QueryClient = makeQueryClient();
beforeEach(() => void vi.useFakeTimers());
afterEach(() => client.clear());

/** A list that changes on the server; its answers are sent when a test says so. */
function makeServer() {
  const waiting: (() => void)[] = [];
  const server = {
    value: "old",
    reads: 0,
    read: () => {
      const { value } = server;
      server.reads += 1;
      return new Promise<string>((resolve) => waiting.push(() => resolve(value)));
    },
    async answer() {
      for (const send of waiting.splice(0)) send();
      await vi.advanceTimersByTimeAsync(5);
    },
  };
  return server;
}

type Server = ReturnType<typeof makeServer>;

function show(server: Server): QueryObserver<string> {
  const observer = new QueryObserver(client, { queryKey, queryFn: server.read });
  observer.subscribe(() => undefined);
  return observer;
}

const refresh = () => void client.invalidateQueries({ queryKey });

it("reads a list again that changed while its first answer was under way", async () => {
  const server = makeServer();
  const page = show(server);
  server.value = "new";
  refresh();
  refresh();
  await server.answer();
  expect(page.getCurrentResult().data).toBe("old");
  await server.answer();
  expect(page.getCurrentResult().data).toBe("new");
  expect(server.reads).toBe(2);
});

it("shows answers that come slower than events", async () => {
  const server = makeServer();
  const page = show(server);
  await server.answer();
  for (const value of ["first", "second", "third"]) {
    server.value = value;
    refresh();
    refresh();
    await vi.advanceTimersByTimeAsync(2);
  }
  expect(server.reads).toBe(2);
  await server.answer();
  expect(page.getCurrentResult().data).toBe("first");
  await server.answer();
  expect(page.getCurrentResult().data).toBe("third");
  expect(server.reads).toBe(3);
});

it("reads what nobody shows yet when it is shown, if it changed while it was read", async () => {
  const server = makeServer();
  void client.prefetchQuery({ queryKey, queryFn: server.read });
  server.value = "new";
  refresh();
  await server.answer();
  const page = show(server);
  await server.answer();
  expect(page.getCurrentResult().data).toBe("new");
});

it("repeats reads that were under way when the connection was lost", async () => {
  const server = makeServer();
  let status: StreamState = "reconnecting";
  let tell: () => void = () => undefined;
  const stream = {
    status: () => ({ state: status, lastMessageAt: null, attempt: 0 }),
    subscribe: (listener: () => void) => {
      tell = listener;
      return () => undefined;
    },
  } as unknown as LiveStream;
  const stop = repeatAfterOutages(client, stream);
  const page = show(server);
  server.read = () => Promise.resolve("after the outage");
  page.setOptions({ queryKey, queryFn: () => server.read() });
  tell();
  status = "live";
  tell();
  await vi.advanceTimersByTimeAsync(5);
  expect(page.getCurrentResult().data).toBe("after the outage");
  stop();
});
