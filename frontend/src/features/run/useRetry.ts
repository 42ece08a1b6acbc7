import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actOnJob, type Origin, resumeWithOtherCode, retryRun } from "@/api/actions";
import { isCodeChange } from "@/api/client";
import { keys } from "@/api/queries";
import type { RunDetail } from "@/api/types";

/** How to go on: from the pause, or by a retry. */
type Way = "resume" | { origin: Origin; reason: string };

export interface Retry {
  isPending: boolean;
  /** Retries the run, or resumes it where it is paused. */
  go(way: Way): void;
  /** The refusal because of changed code, which the user may override. */
  refusal: string | null;
  leave(): void;
  /** Repeats the refused request and allows the changed code. */
  allow(): void;
}

/**
 * Returns functions that retry or resume a run; if the code has changed, the user is asked first.
 */
export function useRetry(run: RunDetail): Retry {
  const client = useQueryClient();
  const [refused, setRefused] = useState<{ way: Way; message: string } | null>(null);
  const act = useMutation({
    mutationFn: ({ way, otherCode }: { way: Way; otherCode: boolean }) => {
      if (way !== "resume") return retryRun(run.id, way.origin, { otherCode, reason: way.reason });
      return otherCode
        ? resumeWithOtherCode(run.job_id ?? "")
        : actOnJob(run.job_id ?? "", "resume");
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.run(run.id) }),
    onError: (error, { way }) => {
      if (isCodeChange(error)) setRefused({ way, message: error.message });
      else
        notifications.show({
          color: "red",
          title: "The request failed",
          message: error.message,
        });
    },
  });
  return {
    isPending: act.isPending,
    go: (way) => act.mutate({ way, otherCode: false }),
    refusal: refused?.message ?? null,
    leave: () => setRefused(null),
    allow: () => refused && act.mutate({ way: refused.way, otherCode: true }),
  };
}
