/** The answers of the mock server by method and path. */
import type * as t from "../../src/api/types";
import { auditEntries } from "./audit.ts";
import { emit, log } from "./events.ts";
import { experiments } from "./experiments.ts";
import { jobs, workers } from "./fleet.ts";
import { grid } from "./grid.ts";
import { id } from "./random.ts";
import { files, provenance, snapshots } from "./records.ts";
import { session } from "./session.ts";

const find = (run: string) =>
  experiments.flatMap((one) => one.runs).find((one) => one.view.id === run);
const page = <T>(items: T[]) => ({ items, next_cursor: null });

const member = (
  user: string,
  display_name: string,
  role: t.Role,
  service_account = false,
): t.Member => ({
  user_id: `usr_${user}`,
  user,
  display_name,
  role,
  since: "2026-10-02T08:00:00Z",
  disabled: false,
  service_account,
});
let loggedIn = true;
let scenario = "";

/**
 * Makes the mock server fail (`error`) or hold nothing (`empty`); `team` gives the user several
 * projects, `viewer` the right to read only.
 */
export function setScenario(name: string): void {
  scenario = name;
}

function act(job: string, verb: string): t.Job | undefined {
  const run = experiments.flatMap((one) => one.runs).find((one) => one.view.job_id === job);
  if (!run) return undefined;
  run.view.state = verb === "pause" ? "paused" : verb === "resume" ? "queued" : "cancelled";
  for (const one of run.view.jobs) one.state = run.view.state;
  emit("run", run, run.view);
  return run.view.jobs[0];
}

/** Returns the document of the answer, or the status of an error. */
export function answer(
  method: string,
  path: string,
  query: URLSearchParams,
  body: string,
): unknown {
  const [, root, key, part] = path.split("/");
  if (path === "/session:redeem" || (path === "/session" && method === "POST")) loggedIn = true;
  if (path === "/session" && method === "DELETE") loggedIn = false;
  if (!loggedIn) return 401;
  if (path.startsWith("/session")) return session(scenario);
  if (scenario === "error" && root !== "session") return 500;
  if (
    scenario === "empty" &&
    ["experiments", "jobs", "workers", "pools", "audit"].includes(root ?? "")
  )
    return page([]);
  if (path === "/series:query")
    return {
      ...grid(JSON.parse(body) as t.SeriesQuery, (run) => find(run)?.points),
      cursor: log.length,
    };
  if (root === "experiments" && !key)
    return page(
      experiments
        .map((one) => one.view)
        .filter(
          (one) =>
            one.name.toLowerCase().includes((query.get("text") ?? "").toLowerCase()) &&
            (!query.get("state") || one.state === query.get("state")),
        ),
    );
  if (root === "experiments") {
    const one = experiments.find((item) => item.view.id === key);
    return one === undefined
      ? 404
      : part === "runs"
        ? page(one.runs.map((run) => run.view))
        : one.view;
  }
  if (root === "runs" && !key) {
    const runs = experiments.flatMap((one) => one.runs.map((run) => run.view));
    return page(runs.filter((run) => run.state === query.get("state")));
  }
  if (root === "runs" && key) {
    const run = find(key);
    if (!run) return 404;
    if (part === "jobs") return { ...run.view.jobs[0], id: id("job"), state: "queued" };
    if (part === "evaluations") return page(run.evaluations);
    if (part === "snapshots") return page(snapshots(run));
    if (part === "series")
      return page(
        [...run.points].map(([name, c]) => ({
          name,
          points: c.value.length,
          nonfinite: 0,
          last_env_step: c.env_step.at(-1) ?? null,
          last_value: c.value.at(-1) ?? null,
        })),
      );
    if (part === "log")
      return {
        run_id: key,
        lines: run.log.filter((line) => line.n > Number(query.get("after") ?? 0)),
        next_after: run.log.length,
        complete: true,
        open_lines: [],
      };
    if (part === "artifacts") return page(query.get("kind") === "video" ? [] : files(run));
    if (part === "provenance") return provenance(run);
    return run.view;
  }
  if (root === "jobs" && key?.includes(":"))
    return act(key.split(":")[0] ?? "", key.split(":")[1] ?? "") ?? 404;
  if (root === "jobs") return page(jobs().filter((job) => job.state === query.get("state")));
  if (root === "members")
    return page([
      member("ada", "Ada Lovelace", "maintainer"),
      member("maxim", "", "member"),
      member("nightly", "", "member", true),
      member("eva", "Eva Tardos", "viewer"),
    ]);
  if (root === "audit") return page(auditEntries(query));
  if (root === "workers") return page(workers());
  if (root === "pools")
    return page([
      {
        name: "default",
        workers: 3,
        slots: 11,
        free_slots: 2,
        queued: jobs().filter((job) => job.state === "queued").length,
        running: 8,
      },
    ]);
  return 404;
}
