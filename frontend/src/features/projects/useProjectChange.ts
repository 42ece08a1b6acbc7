import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { changeProject, projectKeys } from "@/api/projects";
import { keys } from "@/api/queries";
import type { Project, ProjectChange } from "@/api/types";

/** Returns a function that reloads the lists of projects and the caller's session. */
export function useProjectRefresh() {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: projectKeys.all }),
      client.invalidateQueries({ queryKey: keys.session }),
    ]);
}

/** Returns a mutation that changes settings of a project and shows a message. */
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
