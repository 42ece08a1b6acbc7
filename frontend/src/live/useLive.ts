import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from "react";
import { useProject } from "@/api/access";
import type { LiveEvent } from "@/api/types";
import { LiveStream, type Scope, type Status } from "./stream";

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

export function makeStream(): LiveStream {
  return new LiveStream();
}

/**
 * Receives the events of a scope, in the project shown or in all projects, while the component is
 * mounted. `key` identifies the scope; `null` does not connect.
 */
export function useLive(
  key: string | null,
  after: number | null,
  filter: Scope["filter"],
  handlers: Pick<Scope, "onEvents" | "onResync">,
): void {
  const stream = useStream();
  const project = useProject();
  const latest = useRef({ handlers, filter });
  latest.current = { handlers, filter };
  useEffect(() => {
    if (key === null) return;
    return stream.open({
      project,
      filter: latest.current.filter,
      after,
      onEvents: (events: readonly LiveEvent[]) => latest.current.handlers.onEvents(events),
      onResync: () => latest.current.handlers.onResync(),
    });
  }, [stream, project, key, after]);
}
