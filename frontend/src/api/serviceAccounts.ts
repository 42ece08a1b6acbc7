/** Requests about service accounts, and about the tokens that the caller may see. */
import { queryOptions } from "@tanstack/react-query";
import { get, post, remove } from "./client";
import { everyPage, pathIn } from "./queries";
import type { Page, Role, Scope, ServiceAccount, Token } from "./types";

export const credentialKeys = {
  serviceAccounts: (project: string) => ["service accounts", project] as const,
  tokens: ["tokens"] as const,
};

function accountPath(project: string, name = "", part = ""): string {
  return pathIn(project, `/service-accounts${name && `/${encodeURIComponent(name)}`}${part}`);
}

export function serviceAccountsQuery(project: string) {
  return queryOptions({
    queryKey: credentialKeys.serviceAccounts(project),
    queryFn: async ({ signal }) =>
      (await get<Page<ServiceAccount>>(accountPath(project), {}, signal)).items,
  });
}

/** The caller's tokens and those of the projects that the caller maintains, the newest first. */
export const tokensQuery = queryOptions({
  queryKey: credentialKeys.tokens,
  queryFn: ({ signal }) => everyPage<Token>("/tokens", { limit: 500 }, signal),
});

export function createServiceAccount(
  project: string,
  name: string,
  role: Role,
): Promise<ServiceAccount> {
  return post<ServiceAccount>(accountPath(project), { name, role });
}

export function deleteServiceAccount(project: string, name: string): Promise<void> {
  return remove(accountPath(project, name));
}

export interface NewToken {
  name: string;
  scopes: Scope[];
  expires_in_days: number;
}

/** Creates a token of a service account; only this answer holds its secret. */
export function createServiceToken(project: string, name: string, token: NewToken): Promise<Token> {
  return post<Token>(accountPath(project, name, "/tokens"), token);
}

/** Creates a token of the caller; only this answer holds its secret. */
export function createToken(token: NewToken & { project: string | null }): Promise<Token> {
  return post<Token>("/tokens", token);
}

export interface Rotation {
  /** Hours for which the secret of before stays valid. */
  overlap_hours: number;
  /** New life from now on; `null` keeps the end. */
  expires_in_days: number | null;
}

export function rotateToken(id: string, rotation: Rotation): Promise<Token> {
  return post<Token>(`/tokens/${id}:rotate`, rotation);
}

export function revokeToken(id: string): Promise<void> {
  return remove(`/tokens/${id}`);
}
