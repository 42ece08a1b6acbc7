/** The project shown, and what the caller may do there. */
import { useQuery } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { readRememberedProject } from "@/lib/lastProject";
import { sessionQuery } from "./queries";
import type { Membership, Permission, Session } from "./types";

/** Slug of the project shown; `null` on pages over all projects. */
export const ProjectContext = createContext<string | null>(null);

export function useProject(): string | null {
  return useContext(ProjectContext);
}

/** The project to show first: the only one, else the one shown last; `null` if there is neither. */
export function chooseFirstProject({ projects }: Session): string | null {
  if (projects.length === 1) return projects[0]?.slug ?? null;
  const last = readRememberedProject();
  return projects.some((one) => one.slug === last) ? last : null;
}

/** Whether the caller may do something, and otherwise a sentence with the reason. */
export type Right = { allowed: true; reason: null } | { allowed: false; reason: string };

/** An object that a user submitted to a project. */
export interface Submitted {
  project: string;
  /** Login name. */
  created_by: string;
}

const ALLOWED: Right = { allowed: true, reason: null };
const refused = (reason: string): Right => ({ allowed: false, reason });

const NEEDED: Partial<Record<Permission, string>> = {
  "run.submit": "Only members and maintainers of the project may submit",
  "project.settings": "Only maintainers of the project may change its settings",
  "project.members": "Only maintainers of the project may change its members",
  "project.credentials": "Only maintainers of the project may manage its credentials",
  "project.audit": "Only maintainers of the project may read its audit log",
};

/** Whether the session has a permission of the project, or of the server if `project` is `null`. */
export function checkRight(
  session: Session,
  permission: Permission,
  project: string | null,
): Right {
  if (project === null) {
    return session.permissions.includes(permission)
      ? ALLOWED
      : refused("Only administrators of the server may do this.");
  }
  const membership = session.projects.find((one) => one.slug === project);
  if (!membership?.permissions.includes(permission)) {
    const needed = NEEDED[permission] ?? "Your role in the project does not permit this";
    return refused(`${needed}.${findRole(membership)}`);
  }
  return permission === "run.submit" && membership.archived
    ? refused(`${project} is archived: nothing can be submitted to it.`)
    : ALLOWED;
}

/** Whether the session may act on a submitted object; `action` is a phrase: "pause this run". */
export function checkRightToControl(session: Session, object: Submitted, action: string): Right {
  const membership = session.projects.find((one) => one.slug === object.project);
  const permissions = membership?.permissions ?? [];
  if (permissions.includes("run.control_any")) return ALLOWED;
  if (permissions.includes("run.control_own") && object.created_by === session.user) return ALLOWED;
  const who =
    object.created_by === session.user
      ? `Only maintainers and members of ${object.project}`
      : `Only maintainers of ${object.project} and ${object.created_by}, who submitted it,`;
  return refused(`${who} may ${action}.${findRole(membership)}`);
}

/** The projects to which the caller may move experiments, or the reason why there are none. */
export interface MoveTargets {
  right: Right;
  targets: readonly Membership[];
}

export function listMoveTargets({ projects }: Session, project: string): MoveTargets {
  const isMaintained = (one: Membership) => one.permissions.includes("project.settings");
  const source = projects.find((one) => one.slug === project);
  if (source === undefined || !isMaintained(source)) {
    const reason = `Only maintainers of ${project} may move its experiments.${findRole(source)}`;
    return { right: refused(reason), targets: [] };
  }
  const targets = projects.filter((one) => one !== source && isMaintained(one) && !one.archived);
  const right =
    targets.length > 0
      ? ALLOWED
      : refused("You are a maintainer of no other project to which it could be moved.");
  return { right, targets };
}

function findRole(membership: Membership | undefined): string {
  return membership === undefined ? "" : ` Your role is ${membership.role}.`;
}

/** The cached session, which the router reads before it shows a page. */
function useSession(): Session | undefined {
  return useQuery({ ...sessionQuery, enabled: false }).data;
}

/** Whether the caller has a permission of a project, or of the server without one. */
export function usePermission(permission: Permission, project: string | null = null): Right {
  const session = useSession();
  return session === undefined ? ALLOWED : checkRight(session, permission, project);
}

/** Whether the caller may manage a project, by a role in it or as an administrator. */
export function useProjectRight(permission: Permission, project: string): Right {
  const byRole = usePermission(permission, project);
  const asAdministrator = usePermission("server.projects");
  return asAdministrator.allowed ? asAdministrator : byRole;
}

export function useMoveTargets(project: string): MoveTargets {
  const session = useSession();
  return session === undefined
    ? { right: ALLOWED, targets: [] }
    : listMoveTargets(session, project);
}

/** Returns whether the caller may act on an object that a user submitted. */
export function useControl(): (object: Submitted, action: string) => Right {
  const session = useSession();
  return (object, action) =>
    session === undefined ? ALLOWED : checkRightToControl(session, object, action);
}
