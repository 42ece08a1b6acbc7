import { MutationCache, type Query, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";
import { computeRetryDelay, isTransient } from "@/lib/outage";
import type { LiveStream } from "@/live/stream";

/** The cache of the server's answers. The live stream keeps it current, so queries poll rarely. */
export function makeQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    if (error instanceof ApiError && error.status === 401)
      void client.resetQueries({ queryKey: keys.session });
    // The user's roles have changed since the session was read.
    if (error instanceof ApiError && error.status === 403)
      void client.invalidateQueries({ queryKey: keys.session });
  };
  const client = new QueryClient({
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
 * Repeats failed queries as soon as the stream is connected again, rather than at the next retry.
 * Returns a function that stops this.
 */
export function repeatAfterOutages(client: QueryClient, stream: LiveStream): () => void {
  let lost = false;
  const failed = {
    predicate: (query: Query) =>
      query.state.status === "error" || query.state.fetchFailureCount > 0,
  };
  return stream.subscribe(() => {
    const { state } = stream.status();
    if (state === "reconnecting") lost = true;
    if (state !== "live" || !lost) return;
    lost = false;
    void client
      .cancelQueries(failed)
      .then(() => client.refetchQueries({ ...failed, type: "active" }));
  });
}
