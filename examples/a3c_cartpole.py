"""Trains A3C on CartPole in several processes.

python examples/a3c_cartpole.py results/a3c --processes 2
"""  # noqa: INP001

import argparse
from functools import partial

import gymnasium as gym

from palestra.contract.agents import A3cParameters
from workers.entrypoints.functional import train_agent_async
from workers.rl.agents.a3c import A3c

HYPER = A3cParameters(learning_rate=7e-4, gamma=0.99, rollout_steps=5, entropy_coefficient=0.01)


def make_env(process_idx: int, test: bool) -> gym.Env:
    """Makes the environment of one process."""
    del process_idx, test
    return gym.make("CartPole-v1")


def make_agent(process_idx: int, *, seed: int, compiled: bool = False) -> A3c:
    """Makes one process's part of the agent."""
    env, mode = make_env(process_idx, test=False), "compiled" if compiled else "eager"
    return A3c(
        HYPER,
        env.observation_space,
        env.action_space,
        seed=seed,
        process_idx=process_idx,
        compile=mode,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outdir")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--compiled", action="store_true", help="compile the gradient: pays in long trainings"
    )
    options = parser.parse_args()
    train_agent_async(
        options.outdir,
        options.processes,
        make_env,
        steps=options.steps,
        eval_interval=10_000,
        eval_n_episodes=20,
        successful_score=490.0,
        make_agent=partial(make_agent, seed=options.seed, compiled=options.compiled),
        random_seeds=[1000 * options.seed + index for index in range(options.processes)],
    )


if __name__ == "__main__":
    main()
