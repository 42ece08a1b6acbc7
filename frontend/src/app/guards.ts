/** What is checked before a page is shown. */
import type { QueryClient } from "@tanstack/react-query";
import { notFound, type ParsedLocation, redirect } from "@tanstack/react-router";
import { chooseFirstProject } from "@/api/access";
import { ApiError } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { savedViewQuery } from "@/api/savedViews";
import type { Session } from "@/api/types";

/** Redirects a caller without a login to the login page, which returns to this page afterwards. */
export async function requireSession(client: QueryClient, location: ParsedLocation) {
  if (location.hash.startsWith("code="))
    throw redirect({ to: "/login", hash: location.hash, search: {} });
  try {
    await client.ensureQueryData(sessionQuery);
  } catch (error) {
    const known = error instanceof ApiError && (error.status === 401 || error.status === 403);
    if (!known) throw error;
    const search = location.pathname === "/" ? {} : { to: location.href };
    throw redirect({ to: "/login", search });
  }
}

/** The pages on which an administrator manages a project without being a member of it. */
const MANAGED = /\/(settings|members)$/;

/** Shows "not found" for a project that the caller is no member of. */
export async function requireProject(client: QueryClient, slug: string, location: ParsedLocation) {
  const isMember = ({ projects }: Session) => projects.some((one) => one.slug === slug);
  const cached = await client.ensureQueryData(sessionQuery);
  if (isMember(cached)) return;
  if (cached.permissions.includes("server.projects") && MANAGED.test(location.pathname)) return;
  // The membership may be newer than the session that was read.
  if (!isMember(await client.fetchQuery({ ...sessionQuery, staleTime: 0 }))) throw notFound();
}

/** The slug of the project to begin with; without one, the page of all projects is shown. */
export async function chooseFirstSlug(client: QueryClient): Promise<string> {
  const slug = chooseFirstProject(await client.ensureQueryData(sessionQuery));
  if (slug === null) throw redirect({ to: "/" });
  return slug;
}

/** The slug of the project of a view; of the first project where the view cannot be read. */
export async function chooseSlugOfView(
  client: QueryClient,
  view: string | undefined,
): Promise<string> {
  if (view === undefined) return chooseFirstSlug(client);
  try {
    return (await client.fetchQuery(savedViewQuery(view))).project;
  } catch {
    // The page says why the view cannot be shown.
    return chooseFirstSlug(client);
  }
}

/** The slug of the caller's only project; `null` if the caller has none or several. */
export async function onlySlug(client: QueryClient): Promise<string | null> {
  const { projects } = await client.ensureQueryData(sessionQuery);
  return projects.length === 1 ? (projects[0]?.slug ?? null) : null;
}
