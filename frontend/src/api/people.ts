/** The requests of the pages of people and invitations. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, type Parameters, patch, post, remove, removeWithAnswer } from "./client";
import type * as t from "./types";

const PAGE_SIZE = 50;

export const peopleKeys = {
  people: ["people"] as const,
  person: (user: string) => ["person", user] as const,
  invitations: ["invitations"] as const,
};

export interface PeopleFilter {
  text?: string | undefined;
  state?: t.Person["state"] | undefined;
  sort?: string | undefined;
}

function personPath(user: string, verb = ""): string {
  return `/users/${encodeURIComponent(user)}${verb}`;
}

function pagesOf<Item>(queryKey: readonly unknown[], path: string, filter: Parameters) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ signal, pageParam }) =>
      get<t.Page<Item>>(path, { ...filter, limit: PAGE_SIZE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

export function peopleQuery({ text, state, sort }: PeopleFilter) {
  const filter = { text, state, sort };
  return pagesOf<t.Person>([...peopleKeys.people, filter], "/users", filter);
}

/** The first people that match a text, for a field in which a person is chosen. */
export function activePeopleQuery(text: string) {
  return queryOptions({
    queryKey: [...peopleKeys.people, "choice", text],
    queryFn: async ({ signal }) =>
      (await get<t.Page<t.Person>>("/users", { text, state: "active", limit: 20 }, signal)).items,
    placeholderData: keepPreviousData,
  });
}

/** A person by login name or ID, with the numbers of objects that the person owns. */
export function personQuery(user: string) {
  return queryOptions({
    queryKey: peopleKeys.person(user),
    queryFn: ({ signal }) => get<t.PersonDetail>(personPath(user), {}, signal),
  });
}

export function changePerson(user: string, change: t.PersonChange): Promise<t.PersonDetail> {
  return patch(personPath(user), change);
}

/** Disables a person; `transferTo` is the user to whom unfinished jobs are transferred. */
export function disablePerson(
  user: string,
  jobs: t.JobsOfPerson,
  transferTo: string | null,
): Promise<t.PersonDisabled> {
  return post(personPath(user, ":disable"), { jobs, transfer_to: transferTo });
}

export function enablePerson(user: string): Promise<t.PersonDetail> {
  return post(personPath(user, ":enable"));
}

export function resetPassword(user: string): Promise<t.OneTimeLink> {
  return post(personPath(user, ":reset-password"));
}

export function signOutPerson(user: string): Promise<{ ended_sessions: number }> {
  return post(personPath(user, ":sign-out"));
}

export function deletePerson(user: string, transferTo: string | null): Promise<t.PersonDeleted> {
  const query = transferTo === null ? "" : `?transfer_to=${encodeURIComponent(transferTo)}`;
  return removeWithAnswer(personPath(user) + query);
}

/** All invitations, the newest first. */
export function invitationsQuery(sort: string | undefined) {
  return pagesOf<t.Invitation>([...peopleKeys.invitations, sort], "/invitations", { sort });
}

export async function invite(request: t.InviteRequest): Promise<t.Invitation[]> {
  return (await post<{ items: t.Invitation[] }>("/users:invite", request)).items;
}

export function revokeInvitation(id: string): Promise<void> {
  return remove(`/invitations/${encodeURIComponent(id)}`);
}

/** Projects in which an invited person can get a role, for administrators of the server. */
export const openProjectsQuery = queryOptions({
  queryKey: ["projects", "open"],
  queryFn: async ({ signal }) => {
    const found = await get<t.Page<t.Project>>("/projects", { limit: 500 }, signal);
    return found.items.filter((project) => project.archived_at === null);
  },
});
