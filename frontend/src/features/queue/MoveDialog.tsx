import { useMemo } from "react";
import type { Job } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { JobName } from "./JobName";
import type { Move } from "./ownOrder";
import { PreviewPanel } from "./PreviewPanel";

interface MoveDialogProps {
  job: Job;
  move: Move;
  jobs: ReadonlyMap<string, Job>;
  onMove(): void;
  onClose(): void;
}

/** Says what a move among the person's own jobs would do, before it is made. */
export function MoveDialog({ job, move, jobs, onMove, onClose }: MoveDialogProps) {
  const before = move.before === null ? undefined : jobs.get(move.before);
  const wanted = useMemo(() => ({ jobId: job.id, before: move.before }), [job.id, move.before]);
  return (
    <FormDialog
      opened
      title="Move a waiting job"
      submit="Move"
      leave="Leave it"
      isPending={false}
      focusSubmit
      onSubmit={() => {
        onMove();
        onClose();
      }}
      onClose={onClose}
    >
      <div>
        <JobName job={job} linked={false} />
        <p className="muted" style={{ margin: 0 }}>
          {move.before === null ? (
            "after all other jobs of its person in this class"
          ) : (
            <>
              directly before {before ? <JobName job={before} linked={false} /> : "the chosen job"}
            </>
          )}
        </p>
      </div>
      <PreviewPanel wanted={wanted} jobs={jobs} />
    </FormDialog>
  );
}
