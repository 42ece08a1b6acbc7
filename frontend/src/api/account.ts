/** The requests of one's own account: profile, password and browser logins. */
import { queryOptions } from "@tanstack/react-query";
import { get, patch, post, put, remove } from "./client";
import { everyPage } from "./queries";
import type * as t from "./types";

export const accountKeys = {
  account: ["account"] as const,
  sessions: ["account", "sessions"] as const,
};

export const accountQuery = queryOptions({
  queryKey: accountKeys.account,
  queryFn: ({ signal }) => get<t.Account>("/account", {}, signal),
});

export const loginSessionsQuery = queryOptions({
  queryKey: accountKeys.sessions,
  queryFn: ({ signal }) =>
    everyPage<t.LoginSession>("/account/sessions", { limit: 200, sort: "-last_used_at" }, signal),
});

export interface Profile {
  display_name: string | null;
  email: string | null;
}

export function changeAccount(profile: Profile): Promise<t.Account> {
  return patch<t.Account>("/account", profile);
}

export function setPassword(
  password: string,
  current: string | null,
): Promise<{ ended_sessions: number }> {
  return put("/account/password", { password, current_password: current });
}

export function endLoginSession(id: string): Promise<void> {
  return remove(`/account/sessions/${encodeURIComponent(id)}`);
}

export function signOutEverywhere(): Promise<{ ended_sessions: number }> {
  return post("/account:sign-out");
}
