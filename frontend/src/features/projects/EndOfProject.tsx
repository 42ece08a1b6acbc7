import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { Right } from "@/api/access";
import { archiveProject, restoreProject } from "@/api/projects";
import type { Project } from "@/api/types";
import { IconArchive, IconArchiveOff, IconTrash } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { DeleteProject } from "./DeleteProject";
import classes from "./Projects.module.css";
import { useProjectRefresh } from "./useProjectChange";

/** Archives, restores and deletes a project. */
export function EndOfProject({ project, right }: { project: Project; right: Right }) {
  const refresh = useProjectRefresh();
  const [deleting, setDeleting] = useState(false);
  const isArchived = project.archived_at !== null;
  const archive = useMutation({
    mutationFn: () => (isArchived ? restoreProject(project.slug) : archiveProject(project.slug)),
    onSettled: refresh,
    onError: (error) =>
      notifications.show({ color: "red", title: "The request failed", message: error.message }),
  });
  return (
    <Panel title="Archive and delete" flush>
      <Deed
        title={isArchived ? "Restore the project" : "Archive the project"}
        button={
          <Permitted reason={right.reason}>
            <Button
              variant="default"
              leftSection={isArchived ? <IconArchiveOff size={14} /> : <IconArchive size={14} />}
              loading={archive.isPending}
              onClick={() => archive.mutate()}
            >
              {isArchived ? "Restore" : "Archive"}
            </Button>
          </Permitted>
        }
      >
        {isArchived
          ? "Experiments and jobs can be submitted again."
          : "Nothing can be submitted to an archived project. All of it stays readable, and jobs that run go on. It can be restored at any time."}
      </Deed>
      <Deed
        title="Delete the project"
        button={
          <Permitted reason={right.reason ?? (isArchived ? null : "Archive the project first.")}>
            <Button
              variant="outline"
              color="red"
              leftSection={<IconTrash size={14} />}
              onClick={() => setDeleting(true)}
            >
              Delete…
            </Button>
          </Permitted>
        }
      >
        An archived project can be deleted. It disappears at once, and its jobs are cancelled. An
        administrator can restore it for some time; then its experiments, runs and files are
        removed. What the audit log says of it stays.
      </Deed>
      {deleting && <DeleteProject project={project} onClose={() => setDeleting(false)} />}
    </Panel>
  );
}

interface DeedProps {
  title: string;
  button: ReactNode;
  children: ReactNode;
}

function Deed({ title, button, children }: DeedProps) {
  return (
    <div className={classes.deed}>
      <div>
        <strong>{title}</strong>
        <p>{children}</p>
      </div>
      {button}
    </div>
  );
}
