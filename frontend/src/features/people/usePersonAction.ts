import { useMutation, useQueryClient } from "@tanstack/react-query";
import { peopleKeys } from "@/api/people";
import { keys } from "@/api/queries";

/** Returns a mutation that changes a person, and then reloads the person and the lists. */
export function usePersonAction<Answer, Argument = void>(
  act: (argument: Argument) => Promise<Answer>,
  onDone?: (answer: Answer) => void,
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async (answer) => {
      onDone?.(answer);
      // The change may concern the caller, too.
      await Promise.all([
        client.invalidateQueries({ queryKey: peopleKeys.people }),
        client.invalidateQueries({ queryKey: ["person"] }),
        client.invalidateQueries({ queryKey: keys.session }),
      ]);
    },
  });
}
