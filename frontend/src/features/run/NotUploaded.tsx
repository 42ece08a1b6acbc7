import { Button, Modal } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl } from "@/api/access";
import { giveUpResults } from "@/api/actions";
import { keys } from "@/api/queries";
import type { Backlog, Job, RunDetail } from "@/api/types";
import { formatBytes, formatPlural, nameSchedule } from "@/lib/format";
import { Banner } from "@/ui/Banner";
import { Permitted } from "@/ui/Permitted";

/** Shows which files are not uploaded yet and why, with a button that ends the job without them. */
export function NotUploaded({ run }: { run: RunDetail }) {
  const waiting = run.jobs.flatMap((job) =>
    job.not_uploaded === null ? [] : [{ job, backlog: job.not_uploaded }],
  );
  return waiting.map(({ job, backlog }) => (
    <Banner
      key={job.id}
      tone="warn"
      title={titleOf(backlog, job.id === run.job_id ? null : nameSchedule(job.schedule))}
      message={backlog.problem ?? "The worker is uploading it now."}
      actions={backlog.delivering && <GiveUp run={run} job={job} />}
    >
      <p className="muted">
        {formatPlural(backlog.files, "file")}, {formatBytes(backlog.size)}, stay on the worker until
        the server has stored and checked them.
      </p>
    </Banner>
  ));
}

function titleOf({ delivering }: Backlog, schedule: string | null): string {
  const what = delivering ? "result not uploaded yet" : "snapshots not uploaded yet";
  return schedule === null ? what : `${schedule}: ${what}`;
}

function GiveUp({ run, job }: { run: RunDetail; job: Job }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const mayAct = useControl();
  const act = useMutation({
    mutationFn: () => giveUpResults(job.id),
    onSettled: () => client.invalidateQueries({ queryKey: keys.run(run.id) }),
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error.message,
      }),
  });
  return (
    <>
      <Permitted reason={mayAct(job, "give up these results").reason}>
        <Button variant="default" loading={act.isPending} onClick={() => setAsking(true)}>
          Give up…
        </Button>
      </Permitted>
      <Modal
        opened={asking}
        onClose={() => setAsking(false)}
        title="Give up what was not uploaded?"
      >
        <p>
          The worker deletes its copies, and the job ends without them. What the server has stored
          stays.
        </p>
        <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
          <Button variant="default" onClick={() => setAsking(false)} data-autofocus>
            Keep trying
          </Button>
          <Button
            color="red"
            onClick={() => {
              setAsking(false);
              act.mutate();
            }}
          >
            Give it up
          </Button>
        </div>
      </Modal>
    </>
  );
}
