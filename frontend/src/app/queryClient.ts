import {
  type InvalidateOptions,
  type InvalidateQueryFilters,
  MutationCache,
  QueryCache,
  QueryClient,
} from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";
import { computeRetryDelay, isTransient, repeatUnanswered } from "@/lib/outage";
import type { LiveStream } from "@/live/stream";

/**
 * Lets a read end before it is repeated because of what changed meanwhile. `QueryClient` abandons
 * it, so a page whose events come faster than its answers would never change; and it neither
 * abandons nor repeats the first read of a query, so what changed meanwhile would be missed.
 */
class PatientQueryClient extends QueryClient {
  override async invalidateQueries(
    filters?: InvalidateQueryFilters,
    options?: InvalidateOptions,
  ): Promise<void> {
    const patient = { cancelRefetch: false, ...options };
    const underWay = new Set(
      this.getQueryCache()
        .findAll(filters)
        .filter((query) => query.state.fetchStatus === "fetching"),
    );
    await super.invalidateQueries(filters, patient);
    if (underWay.size === 0) return;
    await Promise.allSettled([...underWay].map((query) => query.promise));
    await super.invalidateQueries(
      { ...filters, predicate: (query) => underWay.has(query) },
      patient,
    );
  }
}

/** The cache of the server's answers. The live stream keeps it current, so queries poll rarely. */
export function makeQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    if (error instanceof ApiError && error.status === 401)
      void client.resetQueries({ queryKey: keys.session });
    // The user's roles have changed since the session was read.
    if (error instanceof ApiError && error.status === 403)
      void client.invalidateQueries({ queryKey: keys.session });
  };
  const client = new PatientQueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (query.queryKey[0] !== keys.session[0]) onError(error);
      },
    }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (_failures, error) => isTransient(error),
        retryDelay: computeRetryDelay,
      },
    },
  });
  return client;
}

/**
 * Repeats failed queries as soon as the stream is connected again, rather than at the next retry,
 * and those under way, which may never be answered. Returns a function that stops this.
 */
export function repeatAfterOutages(client: QueryClient, stream: LiveStream): () => void {
  let lost = false;
  return stream.subscribe(() => {
    const { state } = stream.status();
    if (state === "reconnecting") lost = true;
    if (state !== "live" || !lost) return;
    lost = false;
    void repeatUnanswered(client);
  });
}
