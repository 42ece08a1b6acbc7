/** The audit log of the mock server. */
import type * as t from "../../src/api/types";

type Row = [
  user: string | null,
  actor: string,
  action: string,
  object: string,
  refused: string | null,
  data: Record<string, unknown>,
];

const ROWS: Row[] = [
  ["ada", "user:usr_1", "login.open", "ses_8f2c71d0a4", null, {}],
  ["ada", "user:usr_1", "token.create", "tok_51c0f3e2b7", null, { scopes: ["read", "submit"] }],
  ["eva", "user:usr_2", "job.move", "job_0b7e44c19a", null, { from: "running", to: "pausing" }],
  ["eva", "user:usr_2", "request.refuse", "job_9d31aa20ef", "not_yours", { method: "POST" }],
  [null, "daemon:compactor", "log.cut", "log", null, { upto: 1200 }],
  [null, "anonymous", "login.refuse", "usr_1", "invalid_credentials", {}],
  ["maxim", "token:tok_77aa10cc42", "run.retry", "run_3c9911d2e0", null, { origin: "newest" }],
  ["ada", "user:usr_1", "membership.create", "usr_3", null, { role: "member" }],
];
const START = Date.UTC(2026, 10, 24, 9, 0, 0);

/** Entries that match the filter, the newest first. */
export function auditEntries(query: URLSearchParams): t.AuditEntry[] {
  const wanted = (name: string, value: string | null) =>
    !query.get(name) || (value ?? "").startsWith(query.get(name) ?? "");
  return Array.from({ length: 64 }, (_, i): t.AuditEntry => {
    const [user, actor, action, object, code, data] = ROWS[i % ROWS.length] as Row;
    return {
      id: 64 - i,
      at: new Date(START - i * 47 * 60_000).toISOString(),
      actor,
      user_id: user === null ? null : `usr_${user}`,
      user,
      credential: user === null ? null : "ses_8f2c71d0a4",
      address: actor.startsWith("daemon") ? null : "192.0.2.17",
      project_id: action.startsWith("login") ? null : "prj_default",
      action,
      object_type: action.split(".")[0] ?? "",
      object_id: object,
      outcome: code === null ? "allowed" : "refused",
      code,
      count: code === null ? 1 : 4,
      data,
      previous_hash: "5d".repeat(32),
      hash: "c3".repeat(32),
    };
  }).filter(
    (entry) =>
      wanted("user", entry.user ?? null) &&
      wanted("action", entry.action) &&
      wanted("object_id", entry.object_id) &&
      wanted("outcome", entry.outcome),
  );
}
