import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";

/** Reads pools, workers and waiting jobs again. */
export function usePoolRefresh() {
  const client = useQueryClient();
  return () =>
    Promise.all(
      [keys.pools, keys.workers, keys.jobs].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
}

/** A change of a pool without a form: what the server refuses is a notification. */
export function usePoolDeed<Input, Answer>(deed: (input: Input) => Promise<Answer>) {
  const refresh = usePoolRefresh();
  return useMutation<Answer, Error, Input>({
    mutationFn: deed,
    onSettled: refresh,
    onError: (error) =>
      notifications.show({ color: "red", title: "The request failed", message: error.message }),
  });
}
