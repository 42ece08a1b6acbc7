"""The arguments and the statistics of a trainer, and its recorder."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from palestra.contract.names import SERIES_PATTERN
from palestra.contract.telemetry import RunRecord
from palestra.telemetry.spool import SpoolWriter
from workers.core.counts import check_count
from workers.core.object_state import pack, unpack
from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, LearnReport, StateTree
from workers.engine.clock import StillClock
from workers.entrypoints.trainer_parts.tabular import Cell
from workers.recording.recorder import RecordedRun, SpoolRecorder

_SERIES: Final = re.compile(SERIES_PATTERN)
SPOOL: Final = "telemetry"
"""Directory of the telemetry below the snapshots'."""


class NotSetupError(Exception):
    """An experiment is about to run without having been set up."""


@dataclass(slots=True)
class ExperimentStats:
    """Statistics of an experiment."""

    total_epoch: int
    """Index of the last finished epoch."""
    total_itr: int
    """Number of the next iteration."""
    total_env_steps: int
    """env_steps collected for training, over all epochs."""
    last_episode: list[dict[str, object]] | None
    """What the algorithm left in `step_episode` in the last epoch.

    Only where episodes are stored.
    """

    def state_dict(self) -> StateTree:
        """Returns the four fields."""
        packed = pack(self.last_episode, "last_episode")
        return {
            "total_epoch": self.total_epoch,
            "total_itr": self.total_itr,
            "total_env_steps": self.total_env_steps,
            "last_episode": packed,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the four fields."""
        self.total_epoch, self.total_itr = int(state["total_epoch"]), int(state["total_itr"])
        self.total_env_steps = int(state["total_env_steps"])
        self.last_episode = unpack(state["last_episode"])


@dataclass(slots=True)
class TrainArgs:
    """Arguments of `train` or `resume`."""

    n_epochs: int
    """Epochs of the whole training: the index at which it ends."""
    batch_size: int | None
    """env_steps of a batch."""
    plot: bool
    """Film an episode of the policy after each epoch."""
    store_episodes: bool
    """Save the last episodes in the snapshot."""
    pause_for_plot: bool
    """Wait for Enter after each film."""
    start_epoch: int
    """Index of the first epoch."""

    def __post_init__(self) -> None:
        self.n_epochs = check_count(self.n_epochs, "n_epochs", 0)
        if self.batch_size is not None:
            self.batch_size = check_count(self.batch_size, "batch_size", 1)

    def changed(self, **changes: Any) -> "TrainArgs":
        """Returns a copy in which the changes that are not `None` hold."""
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )


class LazySpool:
    """A spool that is opened by its first records and can be closed between two trainings.

    Args:
        directory: Asked for when the spool is opened.
    """

    def __init__(self, directory: Callable[[], Path]) -> None:
        self._directory = directory
        self._writer: SpoolWriter | None = None

    def append(self, records: list[RunRecord]) -> int:
        """Appends records in one piece."""
        if self._writer is None:
            self._writer = SpoolWriter(self._directory() / SPOOL)
        return self._writer.append(records)

    def close(self) -> None:
        """Closes the files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class EpochRecorder(SpoolRecorder):
    """The recorder of a trainer: telemetry, and a call when an epoch closes.

    Args:
        run: What is recorded.
        sink: Where telemetry goes.
        close_epoch: Fills the row of the epoch.
    """

    def __init__(
        self, run: RecordedRun, sink: LazySpool, close_epoch: Callable[[ClockView], None]
    ) -> None:
        super().__init__(run, sink)
        self._close_epoch = close_epoch
        self._returns: list[float] = []

    @property
    def average_return(self) -> float:
        """Mean undiscounted return of the episodes of the epoch that closes.

        NaN where none ended.
        """
        return sum(self._returns) / len(self._returns) if self._returns else math.nan

    def tick(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Records one iteration."""
        self._returns = [end.episode_return for _, end in episodes]
        super().tick(clock, episodes, reports)

    def epoch(self, clock: ClockView) -> None:
        """Records the end of an epoch."""
        self._close_epoch(clock)

    def statistics(self, clock: ClockView, stats: ExperimentStats, row: dict[str, Cell]) -> None:
        """Records the statistics of an epoch, and the numbers of its row as points."""
        for key, value in row.items():
            if not isinstance(value, str) and _SERIES.match(key):
                self.point(clock, key, float(value))
        counted = StillClock(
            **{name: getattr(clock, name) for name in StillClock.__dataclass_fields__}
        )
        super().epoch(replace(counted, iterations=stats.total_itr, env_steps=stats.total_env_steps))
        self.flush()
