/** A mock of the server's API inside Vite's development server. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin, ViteDevServer } from "vite";
import type * as t from "../../src/api/types";
import {
  addEvaluation,
  addPoint,
  experiments,
  id,
  type MockRun,
  SERIES,
  summarise,
} from "./data.ts";
import { grid } from "./grid.ts";

interface Client {
  response: ServerResponse;
  run: string | null;
}

const clients = new Set<Client>();
const log: t.LiveEvent[] = [];
const find = (run: string) =>
  experiments.flatMap((one) => one.runs).find((one) => one.view.id === run);
const page = <T>(items: T[]) => ({ items, next_cursor: null });

function emit(type: string, run: MockRun | null, data: unknown): void {
  const event = {
    id: log.length + 1,
    type,
    experiment_id: run?.view.experiment_id ?? null,
    run_id: run?.view.id ?? null,
    job_id: null,
    at: new Date().toISOString(),
    data,
  } as t.LiveEvent;
  log.push(event);
  for (const client of clients) write(client, event);
}

function write(client: Client, event: t.LiveEvent): void {
  if (client.run === null ? event.type === "points" : event.run_id !== client.run) return;
  client.response.write(
    `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
  );
}

function tick(): void {
  for (const experiment of experiments) {
    const { loop } = experiment.view.definition;
    const budget = "env_steps" in loop ? Number(loop.env_steps) : 0;
    for (const run of experiment.runs.slice(0, 2)) {
      if (run.view.state !== "running" || run.view.progress.env_step >= budget) continue;
      const step = run.view.progress.env_step + 150;
      const wall = Date.now() / 1000;
      run.view.progress = {
        ...run.view.progress,
        env_step: step,
        update: step,
        fraction: step / budget,
      };
      for (const series of SERIES) {
        addPoint(run, series, step, budget, wall);
        const c = run.points.get(series);
        const last = <T>(column: T[] | undefined) => column?.slice(-1) ?? [];
        emit("points", run, {
          series,
          fence: 1,
          seq: log.length,
          env_step: last(c?.env_step),
          update: last(c?.update),
          episode: last(c?.episode),
          wall: last(c?.wall),
          value: last(c?.value),
        });
      }
      if (Math.floor(step / 5000) !== Math.floor((step - 150) / 5000)) {
        const made = addEvaluation(run, step, budget, wall);
        const n = run.log.length + 1;
        run.log.push({
          n,
          attempt_id: made.attempt_id,
          stream: "stdout",
          wall,
          text: `evaluation at ${step}: mean ${Number(made.mean).toFixed(1)} over 20 episodes`,
        });
        emit("evaluation", run, made);
        emit("log", run, { lines: 1 });
        summarise(experiment);
      }
      if (log.length % 5 === 0) emit("run", run, run.view);
    }
  }
}

const session: t.Session = {
  user: "admin",
  project: "default",
  scopes: ["read", "submit", "admin"],
  csrf_token: "mock",
  via: "cookie",
  setup_needed: false,
};
let loggedIn = true;
let scenario = "";

function jobs(): t.Job[] {
  const all = experiments.flatMap((one) => one.runs.flatMap((run) => run.view.jobs));
  let position = 0;
  return all.map((job) =>
    job.state === "queued"
      ? {
          ...job,
          position: ++position,
          waiting:
            position === 1
              ? "Next: starts when a slot of pool default is free."
              : `${position - 1} jobs of pool default go first.`,
        }
      : job,
  );
}

function workers(): t.Worker[] {
  const live = experiments.flatMap((one) => one.runs.filter((run) => run.view.state === "running"));
  const slot = (index: number): t.Worker["slots"][number] => ({
    index,
    attempt_id: live[index]?.view.attempts[0]?.id ?? null,
    job_id: live[index]?.view.job_id ?? null,
    run_ids: live[index] ? [live[index].view.id] : [],
  });
  const base = {
    pool: "default",
    version: "0.1.0",
    registered_at: new Date(Date.now() - 7.2e6).toISOString(),
    last_heartbeat_at: new Date().toISOString(),
  };
  const gpu = (index: number) => ({ index, name: "NVIDIA H200", uuid: "", memory_mib: 143_771 });
  return [
    {
      ...base,
      id: "wrk_a",
      name: "attica",
      host: "attica.example.org",
      state: "online",
      slots: [slot(0), slot(1)],
      gpus: [],
    },
    {
      ...base,
      id: "wrk_b",
      name: "boeotia",
      host: "boeotia.example.org",
      state: "online",
      slots: [2, 3, 4, 5, 6, 7, 80, 81].map((i, index) => ({ ...slot(i), index })),
      gpus: [gpu(0), gpu(1)],
    },
    {
      ...base,
      id: "wrk_c",
      name: "corinth",
      host: "corinth.example.org",
      state: "unreachable",
      slots: [{ ...slot(99), index: 0 }],
      gpus: [],
      last_heartbeat_at: new Date(Date.now() - 95_000).toISOString(),
    },
  ];
}

function act(job: string, verb: string): t.Job | undefined {
  const run = experiments.flatMap((one) => one.runs).find((one) => one.view.job_id === job);
  if (!run) return undefined;
  run.view.state = verb === "pause" ? "paused" : verb === "resume" ? "queued" : "cancelled";
  for (const one of run.view.jobs) one.state = run.view.state;
  emit("run", run, run.view);
  return run.view.jobs[0];
}

function answer(method: string, path: string, query: URLSearchParams, body: string): unknown {
  const [, root, key, part] = path.split("/");
  if (path === "/session:redeem" || (path === "/session" && method === "POST")) loggedIn = true;
  if (path === "/session" && method === "DELETE") loggedIn = false;
  if (!loggedIn) return 401;
  if (path.startsWith("/session")) return session;
  if (scenario === "error" && root !== "session") return 500;
  if (scenario === "empty" && ["experiments", "jobs", "workers", "pools"].includes(root ?? ""))
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
      };
    if (part === "provenance") return provenance(run);
    return run.view;
  }
  if (root === "jobs" && key?.includes(":"))
    return act(key.split(":")[0] ?? "", key.split(":")[1] ?? "") ?? 404;
  if (root === "jobs") return page(jobs().filter((job) => job.state === query.get("state")));
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

function snapshots(run: MockRun): t.Snapshot[] {
  return run.evaluations
    .filter((e) => e.env_step % 10_000 === 0)
    .slice(-3)
    .reverse()
    .map((e, i) => ({
      id: id("snp"),
      run_id: run.view.id,
      attempt_id: e.attempt_id,
      state: "verified",
      reason: "periodic",
      env_step: e.env_step,
      update: e.update,
      episode: e.episode,
      fence: 1,
      score: e.mean,
      resume_exact: true,
      best: i === 1,
      newest: i === 0,
      superseded: false,
      size: 4_812_331,
      files: [],
      created_at: e.created_at,
    }));
}

function provenance(run: MockRun): t.Provenance {
  return {
    run_id: run.view.id,
    experiment_id: run.view.experiment_id,
    seed: run.view.seed,
    submission: {
      argv: ["palestra", "submit", "examples/cartpole-dqn.yaml", "--seeds", "0-2"],
      user: "admin",
      started_at: run.view.created_at,
      git: {
        head: "9415a8a24587efa94b4dfe57160a9896f42ee845",
        branch: "main",
        status: " M examples/cartpole-dqn.yaml",
        diff: [
          "--- a/examples/cartpole-dqn.yaml",
          "+++ b/examples/cartpole-dqn.yaml",
          "@@ -4 +4 @@",
          "-  learning_rate: 0.0003",
          "+  learning_rate: 0.001",
        ].join("\n"),
      },
      environment: { PYTHONHASHSEED: "0", OMP_NUM_THREADS: "1" },
    },
    attempts: [
      {
        attempt_id: run.view.attempts[0]?.id,
        worker: "attica",
        started_at: run.view.started_at,
        packages: { gymnasium: "1.2.1", numpy: "2.3.4", palestra: "0.1.0", torch: "2.13.0" },
        hardware: { cpu: "AMD EPYC 9654", cores: 2, memory_mib: 24_000, gpus: [] },
      },
    ],
  };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://mock");
  const path = url.pathname.replace("/api/v1", "");
  if (path.startsWith("/scenario/")) scenario = path.slice(10);
  if (path === "/events") {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const client = { response, run: url.searchParams.get("run") };
    const after = url.searchParams.get("after");
    if (after !== null) for (const event of log.slice(Number(after))) write(client, event);
    response.write(": hello\n\n");
    clients.add(client);
    request.on("close", () => clients.delete(client));
    return;
  }
  let body = "";
  for await (const chunk of request) body += String(chunk);
  const content = answer(request.method ?? "GET", path, url.searchParams, body);
  const status = typeof content === "number" ? content : 200;
  const problem = {
    type: "about:blank",
    title: "Error",
    status,
    code: "mock",
    detail:
      status === 401
        ? "Log in first."
        : status === 404
          ? "There is no such resource in this project."
          : "The server failed. Nothing was changed; its log has the request_id.",
    request_id: "01kagm5c7x9q2v8r",
    errors: [],
  };
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(status === 200 ? content : problem));
}

function install(server: Pick<ViteDevServer, "middlewares">): void {
  setInterval(tick, 250).unref();
  server.middlewares.use((request, response, next) => {
    if (request.url?.startsWith("/api/v1")) void serve(request, response);
    else next();
  });
}

export function mockServer(): Plugin {
  return { name: "palestra-mock", configureServer: install, configurePreviewServer: install };
}
