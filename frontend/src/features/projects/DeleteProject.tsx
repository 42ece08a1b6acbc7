import { TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { findFaultBeside } from "@/api/client";
import { deleteProject } from "@/api/projects";
import { sessionQuery } from "@/api/queries";
import type { Project } from "@/api/types";
import { formatBytes, formatPlural } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import { useProjectRefresh } from "./useProjectChange";

/** Deletes a project after its slug was typed. */
export function DeleteProject({ project, onClose }: { project: Project; onClose(): void }) {
  const [typed, setTyped] = useState("");
  const navigate = useNavigate();
  const client = useQueryClient();
  const refresh = useProjectRefresh();
  const isManager = usePermission("server.projects").allowed;
  const erase = useMutation({
    mutationFn: () => deleteProject(project.slug, typed),
    onSuccess: async () => {
      // The session tells Home where to lead, and the page of the deleted project is left before
      // it is read again.
      await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
      await navigate({ to: isManager ? "/admin/projects" : "/" });
      await refresh();
      notifications.show({ message: `Deleted ${project.name}` });
    },
  });
  return (
    <FormDialog
      opened
      title={`Delete ${project.name}?`}
      submit="Delete the project"
      destructive
      incomplete={typed !== project.slug}
      isPending={erase.isPending}
      problem={findFaultBeside(erase.error, [])}
      onSubmit={() => erase.mutate()}
      onClose={onClose}
    >
      <p>
        It holds {formatPlural(project.experiments, "experiment")},{" "}
        {formatPlural(project.runs, "run")} and {formatBytes(project.storage_used)} of files. They
        disappear for its {formatPlural(project.members, "member")} at once, jobs that wait or run
        are cancelled, and the content is removed when the time to restore it is over.
      </p>
      <TextInput
        label={
          <>
            Type the slug <code>{project.slug}</code> to confirm
          </>
        }
        data-autofocus
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
