import { choice, flag, type Search, text, tidy } from "@/lib/search";

const STATES = ["active", "disabled"] as const;
const SORTS = ["name", "-name", "created_at", "-created_at"] as const;

/** Reads the filter of the list of people from the URL. */
export function readPeopleSearch(search: Search) {
  return tidy({
    text: text(search, "text"),
    state: choice(search, "state", STATES),
    sort: choice(search, "sort", SORTS),
  });
}

export type PeopleSearch = ReturnType<typeof readPeopleSearch>;

const INVITATION_SORTS = ["created_at", "-created_at", "expires_at", "-expires_at"] as const;

/** Reads the order of the invitations from the URL, and whether the form for new ones is open. */
export function readInvitationsSearch(search: Search) {
  return tidy({
    invite: flag(search, "invite"),
    sort: choice(search, "sort", INVITATION_SORTS),
  });
}

export type InvitationsSearch = ReturnType<typeof readInvitationsSearch>;
