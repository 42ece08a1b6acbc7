import type { Icon } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { firstProject } from "@/api/access";
import { sessionQuery } from "@/api/queries";
import { IconFlask, IconHome, IconListNumbers, IconServer } from "@/ui/icons";

/** A page of the rail. */
export interface Place {
  to: "/" | "/workers" | "/p/$project/experiments" | "/p/$project/queue";
  params: { project: string };
  label: string;
  /** Second key of the shortcut that begins with `g`. */
  key: string;
  icon: Icon;
  exact?: boolean;
}

/** Slug of the project that the rail's pages belong to; `null` if there is none to begin with. */
export function useShownProject(): string | null {
  const { data: session } = useQuery(sessionQuery);
  const { project } = useParams({ strict: false });
  return project ?? (session === undefined ? null : firstProject(session));
}

/** The pages of the rail. Home exists for those who have several projects, or none. */
export function usePlaces(): readonly Place[] {
  const single = useQuery(sessionQuery).data?.projects.length === 1;
  const project = useShownProject();
  return useMemo(() => {
    const params = { project: project ?? "" };
    const home = { to: "/", params, label: "Home", key: "h", icon: IconHome, exact: true } as const;
    const inProject = [
      {
        to: "/p/$project/experiments",
        params,
        label: "Experiments",
        key: "e",
        icon: IconFlask,
      },
      { to: "/p/$project/queue", params, label: "Queue", key: "q", icon: IconListNumbers },
    ] as const;
    const workers = { to: "/workers", params, label: "Workers", key: "w", icon: IconServer };
    return [...(single ? [] : [home]), ...(project === null ? [] : inProject), workers as Place];
  }, [project, single]);
}
