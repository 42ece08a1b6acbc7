"""Records how long short trainings take: real ones, each from its assembly to its last update.

    python -m benchmarks._start_estimates.record [--seeds 16] > runtimes.json

The machine may do other work meanwhile, as the machines of a pool do.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks._train_in_process import EvaluationSink, build_bare_submission, open_training
from workers.trainer_process.schedules import native

TRAININGS: Final[Mapping[str, tuple[str, dict[str, Any], int]]] = {
    "dqn 3k": ("CartPole-v1", {"name": "dqn"}, 3_000),
    "dqn 6k": ("CartPole-v1", {"name": "dqn"}, 6_000),
    "ppo 8k": ("CartPole-v1", {"name": "ppo"}, 8_192),
    "ppo 16k": ("CartPole-v1", {"name": "ppo"}, 16_384),
    "a2c 6k": ("CartPole-v1", {"name": "a2c"}, 6_000),
    "ppo pendulum": ("Pendulum-v1", {"name": "ppo"}, 8_192),
    "sac pendulum": ("Pendulum-v1", {"name": "sac"}, 1_500),
    "td3 pendulum": ("Pendulum-v1", {"name": "td3"}, 2_000),
}
"""By name: environment, agent and env_steps."""


def record(name: str, seed: int) -> float:
    """Returns the seconds of one training."""
    environment, agent, env_steps = TRAININGS[name]
    submission = build_bare_submission(
        "recorded", {"id": environment}, agent, env_steps, compile="eager"
    )
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        with open_training(submission, seed, Path(directory), EvaluationSink()) as training:
            native.train(training)
        return time.perf_counter() - begin


def main() -> None:
    """Trains each definition with each seed, the definitions in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    seeds = parser.parse_args().seeds
    found: dict[str, list[float]] = {name: [] for name in TRAININGS}
    for name in TRAININGS:
        record(name, 1_000)
    for seed in range(seeds):
        for name, seconds in found.items():
            seconds.append(round(record(name, seed), 3))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
