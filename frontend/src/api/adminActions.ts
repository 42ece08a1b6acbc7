/** The requests that change projects and their members. */
import { put, remove } from "./client";
import { pathIn } from "./queries";
import type { Member, Role } from "./types";

function memberPath(project: string, user: string): string {
  return pathIn(project, `/members/${encodeURIComponent(user)}`);
}

/** Adds a user to a project, or changes the user's role in it. */
export function setMember(project: string, user: string, role: Role): Promise<Member> {
  return put<Member>(memberPath(project, user), { role });
}

export function removeMember(project: string, user: string): Promise<void> {
  return remove(memberPath(project, user));
}
