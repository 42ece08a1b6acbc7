import { MutationCache, type Query, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";
import { delayOf, isPassing } from "@/lib/outage";
import type { LiveStream } from "@/live/stream";

/**
 * The cache of what the server said. The live stream keeps it fresh, so that nothing polls fast.
 */
export function makeQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    if (error instanceof ApiError && error.status === 401)
      void client.resetQueries({ queryKey: keys.session });
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
        retry: (_failures, error) => isPassing(error),
        retryDelay: delayOf,
      },
    },
  });
  return client;
}

/**
 * Repeats what failed as soon as the stream is heard again, rather than at the next try. Returns
 * how to stop.
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
