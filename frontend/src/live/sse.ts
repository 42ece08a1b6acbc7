/**
 * Reads a server-sent event stream from a `fetch` body: unlike `EventSource`, `fetch` gives the
 * status code of a refused connection.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** Yields the messages of a response until it ends; calls `onBytes` for each chunk. */
export async function* readMessages(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<EventSourceMessage> {
  const parsed: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => parsed.push(message) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* parsed.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
