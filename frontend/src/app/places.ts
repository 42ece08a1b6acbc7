import type { Icon } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { chooseFirstProject } from "@/api/access";
import { sessionQuery } from "@/api/queries";
import {
  IconChartBar,
  IconFlask,
  IconHome,
  IconListDetails,
  IconListNumbers,
  IconScale,
  IconServer,
  IconSettings,
} from "@/ui/icons";

/** A page of the rail. */
export interface Place {
  to:
    | "/"
    | "/workers"
    | "/usage"
    | "/admin"
    | "/p/$project/runs"
    | "/p/$project/experiments"
    | "/p/$project/benchmarks"
    | "/p/$project/queue";
  params: { project: string };
  label: string;
  /** Second key of the shortcut that begins with `g`. */
  key: string;
  icon: Icon;
  exact?: boolean;
  /** Left out of the rail of narrow windows; the account's menu has it, too. */
  wide?: boolean;
}

/** Slug of the project that the rail's pages belong to; `null` if there is none to begin with. */
export function useShownProject(): string | null {
  const { data: session } = useQuery(sessionQuery);
  const { project } = useParams({ strict: false });
  if (session === undefined) return project ?? null;
  // An administrator may look at the settings of a project without being a member of it.
  const isMember = session.projects.some((one) => one.slug === project);
  return project !== undefined && isMember ? project : chooseFirstProject(session);
}

/** The pages of the rail. The administration is left out for callers with exactly one project. */
export function usePlaces(): readonly Place[] {
  const session = useQuery(sessionQuery).data;
  const single = session?.projects.length === 1;
  const isAdmin = session?.is_admin === true;
  const project = useShownProject();
  return useMemo(() => {
    const params = { project: project ?? "" };
    const home = { to: "/", params, label: "Home", key: "h", icon: IconHome, exact: true } as const;
    const inProject = [
      { to: "/p/$project/runs", params, label: "Runs", key: "r", icon: IconListDetails },
      {
        to: "/p/$project/experiments",
        params,
        label: "Experiments",
        key: "e",
        icon: IconFlask,
      },
      {
        to: "/p/$project/benchmarks",
        params,
        label: "Benchmarks",
        key: "b",
        icon: IconScale,
      },
      { to: "/p/$project/queue", params, label: "Queue", key: "q", icon: IconListNumbers },
    ] as const;
    const workers = { to: "/workers", params, label: "Workers", key: "w", icon: IconServer };
    const usage = { to: "/usage", params, label: "Usage", key: "u", icon: IconChartBar };
    const administration = {
      to: "/admin",
      params,
      label: "Administration",
      key: "a",
      icon: IconSettings,
      wide: true,
    } as const;
    return [
      home,
      ...(project === null ? [] : inProject),
      workers as Place,
      usage as Place,
      ...(single || !isAdmin ? [] : [administration]),
    ];
  }, [project, single, isAdmin]);
}
