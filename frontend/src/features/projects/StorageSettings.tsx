import { Button } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { usePermission } from "@/api/access";
import { findFaultAt, findFaultBeside } from "@/api/client";
import type { Project } from "@/api/types";
import { formatBytes } from "@/lib/format";
import { parseBytes, splitSize } from "@/lib/sizes";
import { Banner } from "@/ui/Banner";
import { Meter } from "@/ui/Meter";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { Refusal } from "@/ui/Refusal";
import classes from "./Projects.module.css";
import { formatStorage } from "./projectColumns";
import { StorageLimit } from "./StorageLimit";
import { useProjectChange } from "./useProjectChange";

/** The storage that the project's files use, and the limit, which administrators change. */
export function StorageSettings({ project }: { project: Project }) {
  const { storage_used: used, storage_limit: limit } = project;
  const right = usePermission("server.projects");
  const [typed, setTyped] = useState(splitSize(limit));
  const change = useProjectChange(project.slug);
  const wanted = parseBytes(typed);
  const isChanged = wanted !== parseBytes(splitSize(limit));
  const problem = findFaultBeside(change.error, ["/storage_limit"]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (right.allowed && isChanged && !Number.isNaN(wanted))
      change.mutate({ storage_limit: wanted });
  };
  return (
    <Panel title="Storage">
      <div className={classes.used}>
        <span>
          <b>{formatBytes(used)}</b>{" "}
          <span className="muted">
            {limit === null ? "used, without a limit" : `used of ${formatBytes(limit)}`}
            {limit !== null && used < limit && `, ${formatBytes(limit - used)} left`}
          </span>
        </span>
        <Meter used={used} limit={limit} label="Storage used" text={formatStorage(project)} />
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
              : findFaultAt(change.error, "/storage_limit")
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
