import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";

const TRANSIENT = new Set([0, 502, 503, 504]);

/** The cache of what the server said. The live stream keeps it fresh, so that nothing polls fast. */
export function makeQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) void client.resetQueries({ queryKey: keys.session });
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
        retry: (failures, error) => failures < 3 && error instanceof ApiError && TRANSIENT.has(error.status),
        retryDelay: (attempt) => Math.min(8_000, 500 * 2 ** attempt),
      },
    },
  });
  return client;
}
