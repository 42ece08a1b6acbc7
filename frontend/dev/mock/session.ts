/** The session of the mock server. */
import type * as t from "../../src/api/types";

const READ: t.Permission[] = ["project.read"];
const MEMBER: t.Permission[] = [...READ, "run.submit", "run.control_own"];
const PERMISSIONS: Record<t.Membership["role"], t.Permission[]> = {
  viewer: READ,
  member: MEMBER,
  maintainer: [
    ...MEMBER,
    "run.control_any",
    "project.settings",
    "project.members",
    "project.credentials",
    "project.audit",
  ],
};

const membership = (slug: string, name: string, role: t.Membership["role"]): t.Membership => ({
  project_id: `prj_${slug}`,
  slug,
  name,
  role,
  archived: slug === "atari-2025",
  permissions: PERMISSIONS[role],
});

/** The session in a scenario. */
export function session(scenario: string): t.Session {
  const team = scenario === "team";
  const isViewer = scenario === "viewer";
  const projects = team
    ? [
        membership("default", "Control suite", "member"),
        membership("locomotion", "Locomotion", "maintainer"),
        membership("atari-2025", "Atari 2025", "viewer"),
      ]
    : [membership("default", "default", isViewer ? "viewer" : "maintainer")];
  return {
    user: "admin",
    user_id: "usr_1",
    display_name: team ? "Ada Lovelace" : "",
    is_admin: !isViewer,
    project: team ? "" : "default",
    projects,
    permissions: isViewer
      ? ["account"]
      : [
          "account",
          "server.users",
          "server.projects",
          "server.pools",
          "server.audit",
          "server.cancel",
        ],
    scopes: ["read", "submit", "admin"],
    csrf_token: "mock",
    via: "cookie",
    setup_needed: false,
  };
}
