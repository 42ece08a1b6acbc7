import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { QueueRequest } from "@/api/actions";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { poolsQuery } from "@/api/queueQueries";
import type { RunDetail } from "@/api/types";
import { capitalize } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { PoolSelect } from "@/ui/JobFields";

interface TestDialogProps {
  run: RunDetail;
  error: unknown;
  isPending: boolean;
  onSubmit(request: QueueRequest): void;
  onClose(): void;
}

/** Queues a test of the run's definition in a pool. */
export function TestDialog({ run, error, isPending, onSubmit, onClose }: TestDialogProps) {
  const [pool, setPool] = useState<string | null>(null);
  const { data: pools } = useQuery(poolsQuery);
  return (
    <FormDialog
      opened
      title={`Test the definition of seed ${run.seed}`}
      submit="Queue the test"
      isPending={isPending}
      focusSubmit
      problem={error === null ? null : findFaultBeside(error, ["/pool"])}
      onSubmit={() => onSubmit({ schedule: "test", ...(pool === null ? {} : { pool }) })}
      onClose={onClose}
    >
      <p>
        One update, one evaluation and one export, to see whether they work. The results do not
        become part of the run's history.
      </p>
      <PoolSelect
        pools={(pools ?? []).map((one) => one.name)}
        value={pool}
        error={capitalize(findFaultAt(error, "/pool") ?? "") || undefined}
        onChange={setPool}
      />
    </FormDialog>
  );
}
