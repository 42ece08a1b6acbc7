import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";

/** Returns a function that reloads pools, workers and waiting jobs. */
export function usePoolRefresh() {
  const client = useQueryClient();
  return () =>
    Promise.all(
      [keys.pools, keys.workers, keys.jobs].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
}

/** Returns a mutation of a pool without a form; a refusal is shown as a notification. */
export function usePoolAction<Input, Answer>(action: (input: Input) => Promise<Answer>) {
  const refresh = usePoolRefresh();
  return useMutation<Answer, Error, Input>({
    mutationFn: action,
    onSettled: refresh,
    onError: (error) =>
      notifications.show({ color: "red", title: "The request failed", message: error.message }),
  });
}
