"""env_steps per second of vector environments on one thread, and the time of a reset.

    python -m benchmarks.envs [--seconds 0.4] [--rounds 5] [--skip-games]

Compares Palestra's vector environments with Gymnasium's and with a plain loop. They run in turn in
one process for several rounds. Rates are per processor second, since wall time depends on ale-py's
threads and on other programs. Ended episodes are reset by a mask, or by Gymnasium's autoreset.
Atari frames are preprocessed. The native Atari vector loads the ROM for every episode, so a second
table shows the share of a reset in a short episode of Pong.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

from benchmarks._report import align_columns, describe_machine
from palestra.contract.envs import AtariPreprocessing, EnvDefinition
from workers.rl.envs.env_sources import register_games
from workers.rl.envs.factory import make_vector

COUNTS = (1, 8, 64)
GAME = "ALE/Pong-v5"
GAMES = 8
EPISODE = 800
"""env_steps of a short episode of Pong."""

Stepped = Iterator[int]
"""Yields the number of env_steps of each vector step."""


def step_raw(name: str, num_envs: int) -> Stepped:
    """Steps raw environments one after the other, like a plain script."""
    envs = [gym.make(name) for _ in range(num_envs)]
    for index, env in enumerate(envs):
        env.reset(seed=index)
    actions = draw_actions(envs[0].action_space, num_envs)
    for step in range(2**62):
        for env, action in zip(envs, actions[step % len(actions)], strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        yield num_envs


def step_gymnasium_vector(name: str, num_envs: int) -> Stepped:
    """Steps Gymnasium's vector environment, which resets by itself."""
    vector = SyncVectorEnv([lambda: gym.make(name)] * num_envs)
    vector.reset(seed=0)
    actions = draw_actions(vector.single_action_space, num_envs)
    for step in range(2**62):
        vector.step(actions[step % len(actions)])
        yield num_envs


def step_palestra_vector(spec: EnvDefinition) -> Stepped:
    """Steps Palestra's vector environment and resets episodes by mask, each with its own seed."""
    vector = make_vector(spec)
    actions = draw_actions(vector.single_action_space, spec.num_envs)
    over, seeds = np.ones(spec.num_envs, np.bool_), np.arange(spec.num_envs)
    for step in range(2**62):
        if over.any():
            vector.begin(over, seeds.tolist())
            seeds += spec.num_envs
        _, _, terminated, truncated = vector.advance(actions[step % len(actions)])
        over = terminated | truncated
        yield spec.num_envs


def draw_actions(space: gym.Space[Any], num_envs: int) -> Any:
    """Returns random actions for 64 vector steps."""
    space.seed(0)
    return np.array([[space.sample() for _ in range(num_envs)] for _ in range(64)])


def measure_rate(stepped: Stepped, seconds: float) -> float:
    """Returns env_steps per second of processor time."""
    begin, steps = time.process_time(), 0
    while True:
        for _ in range(8):
            steps += next(stepped)
        if (passed := time.process_time() - begin) >= seconds:
            return steps / passed


def game(way: Any, preprocessing: AtariPreprocessing) -> EnvDefinition:
    return EnvDefinition(id=GAME, num_envs=GAMES, vectorization=way, preprocessing=preprocessing)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--skip-games", action="store_true")
    arguments = parser.parse_args()
    print(describe_machine())
    register_games()
    contestants: list[tuple[str, str, Callable[[], Stepped]]] = []
    for count in COUNTS:
        what = f"CartPole-v1 x {count}"
        contestants += [
            (what, "bare loop", lambda count=count: step_raw("CartPole-v1", count)),
            (
                what,
                "SyncVectorEnv",
                lambda count=count: step_gymnasium_vector("CartPole-v1", count),
            ),
            (
                what,
                "palestra",
                lambda count=count: step_palestra_vector(
                    EnvDefinition(id="CartPole-v1", num_envs=count)
                ),
            ),
        ]
    if not arguments.skip_games:
        for way in ("sync", "native"):
            contestants.append(
                (
                    f"Pong x {GAMES}",
                    f"palestra {way}",
                    lambda way=way: step_palestra_vector(game(way, AtariPreprocessing())),
                )
            )
    print(build_rate_table(contestants, arguments.rounds, arguments.seconds))
    if not arguments.skip_games:
        print(build_reset_table(arguments.rounds))


def build_rate_table(
    contestants: list[tuple[str, str, Callable[[], Stepped]]], rounds: int, seconds: float
) -> str:
    """Returns a table of env_steps per processor second.

    The last column is the ratio to the first contestant of the same kind.
    """
    running = [make() for _, _, make in contestants]
    for stepped in running:
        next(stepped)
    rates = [[measure_rate(stepped, seconds) for stepped in running] for _ in range(rounds)]
    first = {what: index for index, (what, _, _) in reversed(list(enumerate(contestants)))}
    rows = [("environments", "stepped by", "env_steps/s", "min", "max", "to the first")]
    for index, (what, who, _) in enumerate(contestants):
        values = [one[index] for one in rates]
        ratio = statistics.median(one[index] / one[first[what]] for one in rates)
        rows.append(
            (
                what,
                who,
                f"{statistics.median(values):,.0f}",
                f"{min(values):,.0f}",
                f"{max(values):,.0f}",
                f"{ratio:.2f}",
            )
        )
    return align_columns(rows)


def build_reset_table(rounds: int) -> str:
    """Returns a table of the time of a reset of Pong and its share of a short episode.

    A short episode has `EPISODE` env_steps.
    """
    rows = [("Pong, one game", "reset ms", "env_step µs", f"resets in episodes of {EPISODE}")]
    for way in ("sync", "native"):
        vector = make_vector(game(way, AtariPreprocessing()).model_copy(update={"num_envs": 1}))
        begun, stepped = [], []
        for seed in range(rounds):
            start = time.process_time()
            vector.begin(np.array([True]), [seed])
            middle = time.process_time()
            for _ in range(200):
                vector.advance(np.array([0]))
            begun.append(middle - start)
            stepped.append((time.process_time() - middle) / 200)
        reset, step = statistics.median(begun), statistics.median(stepped)
        rows.append(
            (
                f"palestra {way}",
                f"{reset * 1e3:.1f}",
                f"{step * 1e6:.0f}",
                f"{reset / (reset + EPISODE * step):.0%}",
            )
        )
        vector.close()
    return align_columns(rows)


if __name__ == "__main__":
    main()
