import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { pausePool, resumePool } from "@/api/pools";
import type { Pool } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { IconPlayerPause, IconPlayerPlay } from "@/ui/icons";
import { usePoolAction, usePoolRefresh } from "./usePoolRefresh";

/** Pauses a pool with a reason, or resumes it. */
export function PauseButton({ pool }: { pool: Pool }) {
  const [asking, setAsking] = useState(false);
  const resume = usePoolAction(() => resumePool(pool.name));
  if (pool.paused_at) {
    return (
      <Button
        leftSection={<IconPlayerPlay size={14} />}
        loading={resume.isPending}
        onClick={() => resume.mutate(undefined)}
      >
        Resume
      </Button>
    );
  }
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconPlayerPause size={14} />}
        onClick={() => setAsking(true)}
      >
        Pause…
      </Button>
      {asking && <PauseDialog name={pool.name} onClose={() => setAsking(false)} />}
    </>
  );
}

function PauseDialog({ name, onClose }: { name: string; onClose(): void }) {
  const [reason, setReason] = useState("");
  const refresh = usePoolRefresh();
  const pause = useMutation({
    mutationFn: () => pausePool(name, reason.trim()),
    onSuccess: async () => {
      await refresh();
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title={`Pause the pool ${name}`}
      submit="Pause"
      isPending={pause.isPending}
      incomplete={reason.trim() === ""}
      problem={pause.error?.message}
      onSubmit={() => pause.mutate()}
      onClose={onClose}
    >
      <p>No job of the pool starts until it is resumed. Jobs that run go on.</p>
      <TextInput
        label="Reason"
        description="Everybody whose jobs wait for the pool reads it"
        placeholder="Driver update until 14:00"
        required
        data-autofocus
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
