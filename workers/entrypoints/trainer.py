"""The garage-style face: a trainer that an algorithm's own loop pulls epoch by epoch.

    trainer = Trainer(SnapshotConfig("data/mine"))
    trainer.setup(algo, env)
    trainer.train(n_epochs=100, batch_size=4000)

The algorithm's `train(trainer)` iterates over `trainer.step_epochs()`; `workers.engine.Engine`
stands behind it and closes each epoch with statistics, a row of `progress.csv`, telemetry and a
snapshot. Holds no loop over training.
"""

from contextlib import ExitStack
from typing import Any, Final, Self

from workers.entrypoints.trainer_parts.base_trainer import Trainer
from workers.entrypoints.trainer_parts.episode import StepType
from workers.entrypoints.trainer_parts.episode_batch import EnvSpec, EpisodeBatch
from workers.entrypoints.trainer_parts.epoch_records import (
    ExperimentStats,
    NotSetupError,
    TrainArgs,
)
from workers.entrypoints.trainer_parts.torch_session import TorchSession, materialise
from workers.snapshot.config import SnapshotConfig

__all__ = [
    "EnvSpec",
    "EpisodeBatch",
    "ExperimentStats",
    "NotSetupError",
    "SnapshotConfig",
    "StepType",
    "TFTrainer",
    "TorchTrainer",
    "TrainArgs",
    "Trainer",
]

WALL_COLUMNS: Final = ("TotalTime", "EpochTime", "StepsPerSecond")
"""Columns of the table that no two trainings have in common."""


class TorchTrainer(Trainer):
    """A trainer for the body of `with`, within which a device and a precision are the defaults.

    Args:
        snapshot_config: As of `Trainer`.
        sess: A `TorchSession`, a device or a dtype; `None` keeps the current defaults.
        options: As of `Trainer`.
    """

    def __init__(self, snapshot_config: Any = None, sess: Any = None, **options: Any) -> None:
        super().__init__(snapshot_config, **options)
        self.sess = TorchSession.of(sess)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self.sess.active())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def setup(self, algo: Any, env: Any) -> None:
        """As `Trainer.setup`.

        First, parameters without a shape get theirs, and loaded ones stay as they are.
        """
        materialise(algo, env, "algo")
        super().setup(algo, env)

    def initialize_tf_vars(self) -> None:
        """Gives parameters without a shape theirs; touches no other parameter.

        Raises:
            NotSetupError: If the trainer is not set up.
            ValueError: If a module cannot be called with an observation, or an observation and an
                action.
        """
        self._session.engine("initialize_tf_vars")
        materialise(self._session.algo, self._session.env, "algo")


TFTrainer = TorchTrainer
