/**
 * The log of a run: stored pages first, then lines of the stream. Line numbers show repeated and
 * missing lines. Open lines, such as progress bars, have no number: the newest ones replace them.
 */
import { ApiError } from "@/api/client";
import { logPage } from "@/api/queries";
import type { LogLine, LogPage, OpenLogLine } from "@/api/types";
import { computeRetryDelay, isTransient } from "@/lib/outage";

const MOST_LINES = 50_000;

export interface LogState {
  lines: readonly LogLine[];
  /** The lines that follow and are not complete yet. */
  openLines: readonly OpenLogLine[];
  loading: boolean;
  error: ApiError | null;
  /** Whether lines before the first one were dropped. */
  cut: boolean;
}

export class LogTail {
  readonly runId: string;
  #state: LogState = { lines: [], openLines: [], loading: true, error: null, cut: false };
  #last = 0;
  #reading: AbortController | null = null;
  /** The newest lines of the stream that arrived during a reading. */
  #waiting: LogPage | null = null;
  #failures = 0;
  #again: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();

  constructor(runId: string) {
    this.runId = runId;
  }

  readonly state = (): LogState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Reads the stored lines; the function that is returned stops it. */
  open(): () => void {
    void this.#read();
    return () => {
      clearTimeout(this.#again);
      this.#reading?.abort();
      this.#reading = null;
    };
  }

  reload(): void {
    void this.#read();
  }

  /** Adds lines of the stream; missing lines are read from the server. */
  append(page: LogPage): void {
    if (this.#reading !== null) {
      this.#waiting = page;
      return;
    }
    const hasGap = page.next_after - page.lines.length > this.#last;
    if (hasGap) void this.#read();
    else this.#add(page);
  }

  async #read(): Promise<void> {
    if (this.#reading !== null) return;
    clearTimeout(this.#again);
    const reading = new AbortController();
    this.#reading = reading;
    this.#waiting = null;
    try {
      for (let complete = false; !complete; ) {
        const page = await logPage(this.runId, this.#last, reading.signal);
        if (reading.signal.aborted) return;
        this.#add(page);
        complete = page.complete || page.lines.length === 0;
      }
      this.#failures = 0;
      this.#set({ ...this.#state, loading: false, error: null });
    } catch (error) {
      if (reading.signal.aborted) return;
      this.#set({
        ...this.#state,
        loading: false,
        error: error instanceof ApiError ? error : new ApiError({ status: 0 }),
      });
      if (isTransient(this.#state.error)) {
        const delay = computeRetryDelay(this.#failures, this.#state.error);
        this.#again = setTimeout(() => void this.#read(), delay);
      }
      this.#failures += 1;
    } finally {
      if (this.#reading === reading) this.#reading = null;
    }
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null) this.append(waiting);
  }

  #add(page: LogPage): void {
    const openLines = page.open_lines;
    const fresh = page.lines.filter((line) => line.n > this.#last);
    if (fresh.length === 0) {
      if (openLines.length > 0 || this.#state.openLines.length > 0)
        this.#set({ ...this.#state, openLines });
      return;
    }
    this.#last = (fresh.at(-1) as LogLine).n;
    const all = [...this.#state.lines, ...fresh];
    const cut = this.#state.cut || all.length > MOST_LINES;
    this.#set({ ...this.#state, lines: all.slice(-MOST_LINES), openLines, cut, loading: false });
  }

  #set(state: LogState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
