import { useEffect, useMemo, useRef } from "react";

/**
 * Calls `action` at once and then at most every `milliseconds`; the last call is always executed.
 */
export function throttle(action: () => void, milliseconds: number): { call(): void; stop(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let again = false;
  const run = () => {
    timer = undefined;
    if (!again) return;
    again = false;
    action();
    timer = setTimeout(run, milliseconds);
  };
  return {
    call() {
      again = true;
      if (timer === undefined) run();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

export function useThrottle(action: () => void, milliseconds: number): () => void {
  const latest = useRef(action);
  latest.current = action;
  const made = useMemo(() => throttle(() => latest.current(), milliseconds), [milliseconds]);
  useEffect(() => made.stop, [made]);
  return made.call;
}
