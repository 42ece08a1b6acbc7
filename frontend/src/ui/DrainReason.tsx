import { Banner } from "./Banner";

interface DrainReasonProps {
  worker: { name: string; drain_reason?: string | null };
}

/** Says why a worker drains by itself; shows nothing if a user drained it or it does not drain. */
export function DrainReason({ worker: { name, drain_reason } }: DrainReasonProps) {
  if (!drain_reason) return null;
  return (
    <Banner tone="warn" title={`The worker ${name} takes no further jobs`} message={drain_reason}>
      <p>Mend the worker, then restart it or end its draining.</p>
    </Banner>
  );
}
