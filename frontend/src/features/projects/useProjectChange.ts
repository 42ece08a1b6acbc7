import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { changeProject, projectKeys } from "@/api/projects";
import { keys } from "@/api/queries";
import type { Project, ProjectChange } from "@/api/types";

/** Reads again what shows projects: the lists, and the session with the caller's memberships. */
export function useProjectRefresh() {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: projectKeys.all }),
      client.invalidateQueries({ queryKey: keys.session }),
    ]);
}

/** Changes members of a project; faults are shown at the fields. */
export function useProjectChange(slug: string) {
  const refresh = useProjectRefresh();
  return useMutation<Project, Error, ProjectChange>({
    mutationFn: (change) => changeProject(slug, change),
    onSuccess: async () => {
      await refresh();
      notifications.show({ message: "Saved" });
    },
  });
}
