"""Garage-style trainers, with which an algorithm runs its own loop over epochs.

    trainer = Trainer(SnapshotConfig("data/mine"))
    trainer.setup(algo, env)
    trainer.train(n_epochs=100, batch_size=4000)

The algorithm's `train(trainer)` iterates over `trainer.step_epochs()`. At the end of each epoch
`workers.engine.Engine` writes statistics, a row of `progress.csv`, telemetry and a snapshot.
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
from workers.entrypoints.trainer_parts.torch_session import TorchSession, initialise_lazy_parameters
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
"""Columns of `progress.csv` with wall times, which differ between two otherwise equal trainings."""


class TorchTrainer(Trainer):
    """A trainer and context manager that sets torch's default device and dtype within `with`.

    Args:
        snapshot_config: See `Trainer`.
        sess: A `TorchSession`, a device or a dtype; `None` keeps the current defaults.
        options: See `Trainer`.
    """

    def __init__(self, snapshot_config: Any = None, sess: Any = None, **options: Any) -> None:
        super().__init__(snapshot_config, **options)
        self.sess = TorchSession.from_value(sess)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self.sess.activate())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def setup(self, algo: Any, env: Any) -> None:
        """Initialises lazy parameters of the algorithm, then calls `Trainer.setup`.

        Parameters that are initialised or loaded already are not changed.
        """
        initialise_lazy_parameters(algo, env, "algo")
        super().setup(algo, env)

    def initialize_tf_vars(self) -> None:
        """Initialises lazy parameters of the algorithm; changes no other parameter.

        Raises:
            NotSetupError: If neither `setup` nor `restore` has been called: unlike the variables of
                a TensorFlow session, parameters are known only with their algorithm.
            ValueError: If a module can be called neither with an observation nor with an
                observation and an action.
        """
        self._session.engine("initialize_tf_vars")
        initialise_lazy_parameters(self._session.algo, self._session.env, "algo")


TFTrainer = TorchTrainer
