/** Workers and the jobs in their slots. */
import type * as t from "../../src/api/types";
import { experiments } from "./experiments.ts";

export function jobs(): t.Job[] {
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
              : `${position - 1} ${position === 2 ? "job" : "jobs"} of pool default go first.`,
        }
      : job,
  );
}

export function workers(): t.Worker[] {
  const live = experiments.flatMap((one) => one.runs.filter((run) => run.view.state === "running"));
  const slot = (index: number): t.Worker["slots"][number] => ({
    index,
    busy: live[index] !== undefined,
    attempt_id: live[index]?.view.attempts[0]?.id ?? null,
    job_id: live[index]?.view.job_id ?? null,
    run_ids: live[index] ? [live[index].view.id] : [],
  });
  const base = {
    pool: "default",
    version: "0.1.0",
    registered_at: new Date(Date.now() - 7.2e6).toISOString(),
    last_heartbeat_at: new Date().toISOString(),
    has_wrong_clock: false,
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
      has_wrong_clock: true,
      clock_skew_seconds: -754,
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
