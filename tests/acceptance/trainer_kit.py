"""Helpers for the rows of garage's Trainer."""

import csv
from pathlib import Path
from typing import Any

from tests.support.garage_kit import CountingAlgo, CountingEnv
from workers.entrypoints.trainer import TorchTrainer, Trainer
from workers.snapshot import SnapshotConfig

Kind = type[Trainer]
KINDS = (Trainer, TorchTrainer)


def make_trainer(
    kind: Kind, path: Path, mode: str = "all", gap: int = 1, **options: Any
) -> tuple[Any, CountingAlgo]:
    """Returns a trainer that is set up with a `CountingAlgo`."""
    env = options.pop("env", None) or CountingEnv()
    algo = options.pop("algo", None) or CountingAlgo(env, **options)
    trainer = kind(SnapshotConfig(path, mode, gap))
    trainer.setup(algo, env)
    return trainer, algo


def read_progress(path: Path) -> list[dict[str, str]]:
    with (path / "progress.csv").open(newline="") as file:
        return list(csv.DictReader(file))
