/**
 * Reads a server-sent event stream (WHATWG HTML, section 9.2) from a `fetch` body: unlike
 * EventSource it sees status codes.
 */

export interface Message {
  /** Last `id:` seen; stays until another comes. */
  id: string;
  event: string;
  data: string;
}

/** Parses chunks of text into messages; keeps what is incomplete. */
export class SseParser {
  #rest = "";
  #id = "";
  #event = "";
  #data: string[] = [];
  retry: number | null = null;

  push(chunk: string): Message[] {
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const messages: Message[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0)
          messages.push({
            id: this.#id,
            event: this.#event || "message",
            data: this.#data.join("\n"),
          });
        this.#event = "";
        this.#data = [];
      } else if (!line.startsWith(":")) this.#field(line);
    }
    return messages;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(text);
    else if (name === "event") this.#event = text;
    else if (name === "id" && !text.includes("\0")) this.#id = text;
    else if (name === "retry" && /^\d+$/.test(text)) this.retry = Number(text);
  }
}

/** Yields the messages of a response until it ends. */
export async function* messages(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<Message> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
