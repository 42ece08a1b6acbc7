import { Button } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { usePermission } from "@/api/access";
import { faultAt, faultBeside } from "@/api/client";
import type { Project } from "@/api/types";
import { bytes } from "@/lib/format";
import { bytesOf, sizeOf } from "@/lib/sizes";
import { Banner } from "@/ui/Banner";
import { Meter } from "@/ui/Meter";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { Refusal } from "@/ui/Refusal";
import classes from "./Projects.module.css";
import { storageText } from "./projectColumns";
import { StorageLimit } from "./StorageLimit";
import { useProjectChange } from "./useProjectChange";

/** The storage that the project's files use, and the limit, which administrators change. */
export function StorageSettings({ project }: { project: Project }) {
  const { storage_used: used, storage_limit: limit } = project;
  const right = usePermission("server.projects");
  const [typed, setTyped] = useState(sizeOf(limit));
  const change = useProjectChange(project.slug);
  const wanted = bytesOf(typed);
  const isChanged = wanted !== bytesOf(sizeOf(limit));
  const problem = faultBeside(change.error, ["/storage_limit"]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (right.allowed && isChanged && !Number.isNaN(wanted))
      change.mutate({ storage_limit: wanted });
  };
  return (
    <Panel title="Storage">
      <div className={classes.used}>
        <span>
          <b>{bytes(used)}</b>{" "}
          <span className="muted">
            {limit === null ? "used, without a limit" : `used of ${bytes(limit)}`}
            {limit !== null && used < limit && `, ${bytes(limit - used)} left`}
          </span>
        </span>
        <Meter used={used} limit={limit} label="Storage used" text={storageText(project)} />
        {limit !== null && used >= limit && (
          <Banner tone="bad" title="Nothing can be submitted: the limit is reached">
            <p>
              Snapshots of running jobs are still stored, but no further videos and exports. Move
              experiments to another project, or{" "}
              {right.allowed ? "raise the limit." : "ask an administrator to raise the limit."}
            </p>
          </Banner>
        )}
        <p className="muted">
          Snapshots, videos, exports and other stored files; equal files of the project count once.
        </p>
      </div>
      <form className={classes.form} onSubmit={submit}>
        <StorageLimit
          value={typed}
          onChange={setTyped}
          readOnly={!right.allowed}
          error={
            Number.isNaN(wanted)
              ? "Write a number, such as 50 or 1.5."
              : faultAt(change.error, "/storage_limit")
          }
        />
        <Refusal text={problem} />
        <Permitted reason={right.reason}>
          <Button
            type="submit"
            variant="default"
            loading={change.isPending}
            disabled={right.allowed && (!isChanged || Number.isNaN(wanted))}
          >
            Change the limit
          </Button>
        </Permitted>
      </form>
    </Panel>
  );
}
