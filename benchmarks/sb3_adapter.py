"""Processor time of Stable-Baselines3 within Palestra, as a multiple of the library's own time.

    python -m benchmarks.sb3_adapter [--rounds 4]

Both train the same definition in turn on one thread by the library's own `learn`; in Palestra with
its recorder, budget, final evaluation and snapshot.
"""

import argparse
import logging
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks._report import describe_machine, show
from benchmarks._train_in_process import build_bare_submission, open_training
from palestra.telemetry.spool import SpoolWriter
from workers.trainer_process.schedules import native

ENV_ID = "CartPole-v1"


class Case(NamedTuple):
    algorithm: str
    num_envs: int
    env_steps: int
    parameters: dict[str, Any]


CASES = (
    Case("PPO", 8, 40_960, {"n_steps": 128, "batch_size": 256, "n_epochs": 4}),
    Case(
        "DQN",
        1,
        8_000,
        {"learning_starts": 1_000, "batch_size": 64, "train_freq": 1, "gradient_steps": 1},
    ),
)


def measure_in_palestra(case: Case) -> float:
    """Returns CPU seconds of a training in Palestra, with one evaluation episode and a snapshot."""
    env = {"id": ENV_ID, "num_envs": case.num_envs}
    agent = {"name": "sb3", "algorithm": case.algorithm, "parameters": case.parameters}
    submission = build_bare_submission(case.algorithm, env, agent, case.env_steps)
    with (
        tempfile.TemporaryDirectory() as directory,
        SpoolWriter(Path(directory, "spool")) as spool,
        open_training(submission, 0, Path(directory), spool) as training,
    ):
        began = time.process_time()
        native.train(training)
        return time.process_time() - began


def measure_alone(case: Case) -> float:
    """Returns CPU seconds of the library's own `learn`."""
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env

    kind = getattr(stable_baselines3, case.algorithm)
    model = kind(
        "MlpPolicy",
        make_vec_env(ENV_ID, case.num_envs, seed=0),
        seed=0,
        device="cpu",
        **case.parameters,
    )
    began = time.process_time()
    model.learn(case.env_steps)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    print(describe_machine())
    for case in CASES:
        for warm_up in (measure_in_palestra, measure_alone):
            warm_up(case._replace(env_steps=2_048))
        ratios = [measure_in_palestra(case) / measure_alone(case) for _ in range(options.rounds)]
        show(f"{case.algorithm} within Palestra / by itself", ratios, "x")


if __name__ == "__main__":
    main()
