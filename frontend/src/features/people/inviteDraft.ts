/** What is typed into the form of invitations. */
import type { InviteRequest, Role } from "@/api/types";

export interface PersonDraft {
  key: number;
  name: string;
  displayName: string;
  email: string;
}

export interface RoleDraft {
  key: number;
  project: string | null;
  role: Role;
}

export interface InviteDraft {
  people: PersonDraft[];
  roles: RoleDraft[];
  isAdmin: boolean;
  hours: number;
}

let lastKey = 0;

/** Keys keep the fields of a row when a row before it is removed. */
function nextKey(): number {
  lastKey += 1;
  return lastKey;
}

export function newPerson(): PersonDraft {
  return { key: nextKey(), name: "", displayName: "", email: "" };
}

export function newRole(): RoleDraft {
  return { key: nextKey(), project: null, role: "member" };
}

/** What is typed into the field of a login name, as far as it can become one. */
export function asLoginName(typed: string): string {
  return typed.toLowerCase().replace(/[\s_.]+/g, "-");
}

/** Everybody of a form gets the same roles; fields that are empty are left to the person. */
export function inviteRequest({ people, roles, isAdmin, hours }: InviteDraft): InviteRequest {
  const projects = roles.flatMap(({ project, role }) =>
    project === null ? [] : [{ project, role }],
  );
  return {
    invitations: people.map(({ name, displayName, email }) => ({
      name: name || null,
      display_name: displayName.trim() || null,
      email: email.trim() || null,
      is_admin: isAdmin,
      projects,
    })),
    expires_in_hours: hours,
  };
}
