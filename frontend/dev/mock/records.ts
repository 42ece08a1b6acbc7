/** Snapshots and provenance of a mock run. */
import type * as t from "../../src/api/types";
import type { MockRun } from "./points.ts";
import { id } from "./random.ts";

export function snapshots(run: MockRun): t.Snapshot[] {
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

export function files(run: MockRun): t.Artifact[] {
  return [true, false].map((stored) => ({
    id: id("art"),
    run_id: run.view.id,
    attempt_id: run.view.attempts[0]?.id ?? "",
    snapshot_id: null,
    name: stored ? "policy.onnx" : "weights.safetensors",
    kind: "export",
    size: 148_234,
    sha256: "5f".repeat(32),
    env_step: run.view.progress.env_step,
    stored,
    created_at: run.view.created_at,
  }));
}

export function provenance(run: MockRun): t.Provenance {
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
