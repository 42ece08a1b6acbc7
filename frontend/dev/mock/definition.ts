/** Definitions of the mock experiments. */
import type * as t from "../../src/api/types";

export function definition(
  name: string,
  agent: "dqn" | "ppo",
  env: string,
  budget: number,
  rate: number,
): t.ExperimentDetail["definition"] {
  const parameters =
    agent === "dqn"
      ? {
          name: "dqn",
          learning_rate: rate,
          gamma: 0.99,
          batch_size: 64,
          buffer_size: 100_000,
          learning_starts: 1000,
          train_every: 1,
          updates_per_train: 1,
          target_update_every: 500,
          double: true,
          epsilon_start: 1,
          epsilon_end: 0.05,
          epsilon_decay_steps: 10_000,
          loss: "huber",
          max_grad_norm: 10,
          hidden_sizes: [64, 64],
          activation: "relu",
        }
      : {
          name: "ppo",
          learning_rate: rate,
          gamma: 0.99,
          gae_lambda: 0.95,
          rollout_steps: 128,
          passes: 4,
          minibatch_size: 256,
          clip_range: 0.2,
          value_coefficient: 0.25,
          entropy_coefficient: 0.01,
          normalize_advantages: true,
          target_kl: null,
          max_grad_norm: 0.5,
          hidden_sizes: [64, 64],
          activation: "tanh",
        };
  return {
    kind: "rl",
    schema_version: 2,
    name,
    notes: "",
    env: {
      id: env,
      kwargs: {},
      num_envs: agent === "ppo" ? 8 : 1,
      max_episode_steps: 500,
      vectorization: "sync",
    },
    agent: parameters,
    loop: { env_steps: budget, updates: null, episodes: null, epoch_env_steps: 1000 },
    evaluation: {
      every_env_steps: 5000,
      episodes: 20,
      steps: null,
      max_episode_steps: null,
      during_episode: true,
    },
    snapshot: { every_env_steps: 10_000, keep_last: 2, keep_best: true, memory: "full" },
    hooks: [{ name: "nan_guard", updates: 100 }],
    stop: { success_score: 475, success_evaluations: 1 },
    export: { formats: [] },
  } as unknown as t.ExperimentDetail["definition"];
}
