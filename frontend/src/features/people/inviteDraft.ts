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

/** Returns a new key for a row, so that a row keeps its fields when an earlier row is removed. */
function nextKey(): number {
  lastKey += 1;
  return lastKey;
}

export function createPerson(): PersonDraft {
  return { key: nextKey(), name: "", displayName: "", email: "" };
}

export function createRole(): RoleDraft {
  return { key: nextKey(), project: null, role: "member" };
}

/** Converts typed text to lower case, with hyphens for spaces, dots and underscores. */
export function normaliseLoginName(typed: string): string {
  return typed.toLowerCase().replace(/[\s_.]+/g, "-");
}

/** Makes the request of a form: all people get the same roles, and empty fields are left out. */
export function buildInviteRequest({ people, roles, isAdmin, hours }: InviteDraft): InviteRequest {
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
