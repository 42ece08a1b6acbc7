"""Learning from small numbers in bytes, beside Stable-Baselines3: bits, boards and dictionaries.

    python -m benchmarks.byte_observations [--seeds 5] [--env-steps 3000]

The environment shows eight numbers as uint8 and asks for an action that depends on the first one
(`tests.support.byte_envs`); the best return is 10, chance is 5. Each row has the final greedy
evaluations over 20 episodes of all seeds. Palestra's agents and those of Stable-Baselines3 run in
the same loop with the same hyperparameters; the third column divides bytes by 255, as Palestra did
before it divided them by their bounds.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any, Final

import tests.support.byte_envs  # noqa: F401 - registers
from benchmarks._report import align_columns, describe_machine
from tests.support.trainings import TrainingAttempt, make_work_order
from workers.assembly.training import Training
from workers.trainer_process.schedules import native

FORMS: Final[dict[str, dict[str, Any]]] = {
    "bits": {"form": "box", "high": 1},
    "board of 0 to 3": {"form": "box", "high": 3},
    "dict of bits": {"form": "dict", "high": 1},
}
_POLICY: Final = {"net_arch": [64, 64]}
AGENTS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "PPO": (
        {
            "name": "ppo",
            "rollout_steps": 256,
            "minibatch_size": 64,
            "passes": 10,
            "learning_rate": 3e-4,
            "gamma": 0.99,
            "hidden_sizes": [64, 64],
        },
        {"n_steps": 256, "batch_size": 64, "n_epochs": 10, "learning_rate": 3e-4},
    ),
    "DQN": (
        {
            "name": "dqn",
            "learning_rate": 1e-3,
            "batch_size": 64,
            "learning_starts": 200,
            "train_every": 1,
            "target_update_every": 200,
            "buffer_size": 10_000,
            "hidden_sizes": [64, 64],
        },
        {
            "learning_rate": 1e-3,
            "batch_size": 64,
            "learning_starts": 200,
            "train_freq": 1,
            "target_update_interval": 200,
            "buffer_size": 10_000,
        },
    ),
    "SAC": (
        {
            "name": "sac",
            "learning_rate": 3e-4,
            "batch_size": 64,
            "learning_starts": 200,
            "buffer_size": 10_000,
            "hidden_sizes": [64, 64],
        },
        {
            "learning_rate": 3e-4,
            "batch_size": 64,
            "learning_starts": 200,
            "buffer_size": 10_000,
        },
    ),
}


class Attempt(TrainingAttempt):
    """An attempt that also trains agents with a loop of their own."""

    def _drive(self, training: Training, stop_at: int | None, pause_at: int | None) -> None:
        del stop_at, pause_at
        native.train(training)


def train(
    agent: dict[str, Any], kwargs: dict[str, Any], seed: int, env_steps: int, **options: bool
) -> float:
    """Returns the mean return of the final evaluation of a training."""
    document = {
        "kind": "rl",
        "schema_version": 2,
        "name": "bytes",
        "env": {"id": "Bits-v0", "kwargs": kwargs},
        "agent": agent,
        "loop": {"env_steps": env_steps},
        "evaluation": {"every_env_steps": None, "episodes": 20},
    }
    with tempfile.TemporaryDirectory() as folder:
        order = make_work_order(document, seed=seed)
        records = Attempt(order, Path(folder), **options).run().dump_records()
    return float(next(one["mean"] for one in records if one["type"] == "evaluation"))


def train_all(
    agent: dict[str, Any], kwargs: dict[str, Any], options: argparse.Namespace, **before: bool
) -> str:
    """Trains all seeds; returns mean and range of their returns."""
    returns = [
        train(agent, kwargs, seed, options.env_steps, **before) for seed in range(options.seeds)
    ]
    return f"{statistics.fmean(returns):.2f} ({min(returns):.1f} to {max(returns):.1f})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="the seeds 0 to this, exclusive")
    parser.add_argument("--env-steps", type=int, default=3_000, help="length of each training")
    options = parser.parse_args()
    print(describe_machine())
    rows = [("", "Palestra", "Stable-Baselines3", "bytes / 255")]
    for algorithm, (ours, parameters) in AGENTS.items():
        for name, form in FORMS.items():
            kwargs = {**form, "is_continuous": algorithm == "SAC"}
            theirs = {
                "name": "sb3",
                "algorithm": algorithm,
                "policy": "MultiInputPolicy" if form["form"] == "dict" else "MlpPolicy",
                "parameters": {**parameters, "policy_kwargs": _POLICY},
            }

            row = (
                f"{algorithm}, {name}",
                train_all(ours, kwargs, options),
                train_all(theirs, kwargs, options),
                train_all(ours, kwargs, options, scales_by_bounds=False),
            )
            rows.append(row)
            print(*row, sep="  ", flush=True)
    print("\n" + align_columns(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
