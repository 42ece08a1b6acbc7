import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useSyncExternalStore,
} from "react";
import { useProject } from "@/api/access";
import type { LiveEvent } from "@/api/types";
import { getPublicPath } from "@/lib/publicPath";
import type { Transport } from "./connectionTypes";
import { LiveStream, type OpenScope, type Scope, type Status } from "./stream";
import { makeSharedPort } from "./tabPort";

export const StreamContext = createContext<LiveStream | null>(null);

export function useStream(): LiveStream {
  const stream = useContext(StreamContext);
  if (stream === null) throw new Error("StreamContext is missing");
  return stream;
}

export function useStreamStatus(): Status {
  const stream = useStream();
  return useSyncExternalStore(stream.subscribe, stream.status);
}

/** Makes the stream of a tab, which leaves the shared connection when the page is left. */
export function makeStream(): LiveStream {
  const transport: Transport = {
    fetch: (path, init) => fetch(getPublicPath() + path, init),
    random: Math.random,
  };
  const stream = new LiveStream(makeSharedPort(transport));
  window.addEventListener("pagehide", () => stream.leave());
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) stream.rejoin();
  });
  return stream;
}

/**
 * Receives the events of a scope, in the project shown or in all projects, while the component is
 * mounted. `key` identifies the scope; `null` follows nothing. Returns a function that ends the
 * delivery until the scope changes.
 */
export function useLive(
  key: string | null,
  after: number | null,
  filter: Scope["filter"],
  handlers: Pick<Scope, "onEvents" | "onResync">,
): () => void {
  const stream = useStream();
  const project = useProject();
  const latest = useRef({ handlers, filter });
  latest.current = { handlers, filter };
  const opened = useRef<OpenScope | null>(null);
  useEffect(() => {
    if (key === null) return;
    const scope = stream.open({
      project,
      filter: latest.current.filter,
      after,
      onEvents: (events: readonly LiveEvent[]) => latest.current.handlers.onEvents(events),
      onResync: () => latest.current.handlers.onResync(),
    });
    opened.current = scope;
    return () => scope.close();
  }, [stream, project, key, after]);
  return useCallback(() => opened.current?.mute(), []);
}
