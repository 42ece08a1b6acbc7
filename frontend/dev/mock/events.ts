/** The live stream: an event log, its clients, and trainings that advance four times a second. */
import type { ServerResponse } from "node:http";
import type * as t from "../../src/api/types";
import { experiments, summarise } from "./experiments.ts";
import { addEvaluation, addPoint, type MockRun, SERIES } from "./points.ts";

export interface Client {
  response: ServerResponse;
  subscriptions: { runs: string[]; after: number | null }[];
}

export const clients = new Set<Client>();
export const log: t.LiveEvent[] = [];
export function emit(type: string, run: MockRun | null, data: unknown): void {
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

/** Sends an event to a client; `old` ones only to subscriptions with an earlier cursor. */
export function write(client: Client, event: t.LiveEvent, old = false): void {
  const numbers = [...client.subscriptions.keys()].filter((number) => {
    const { runs, after } = client.subscriptions[number] ?? { runs: [], after: null };
    const takes = runs.length > 0 ? runs.includes(event.run_id ?? "") : event.type !== "points";
    return takes && (after === null ? !old : event.id > after);
  });
  if (numbers.length === 0) return;
  const data = `data: ${numbers.join(",")}\ndata: ${JSON.stringify(event)}`;
  client.response.write(`id: ${event.id}\nevent: ${event.type}\n${data}\n\n`);
}

export function tick(): void {
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
          fence: 1,
          seq: log.length,
          series: [
            {
              name: series,
              env_step: last(c?.env_step),
              update: last(c?.update),
              episode: last(c?.episode),
              wall: last(c?.wall),
              value: last(c?.value),
            },
          ],
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
