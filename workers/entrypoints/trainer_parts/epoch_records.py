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
"""Name of the telemetry's directory in the directory of the snapshots."""


class NotSetupError(Exception):
    """A method that needs `Trainer.setup` or `Trainer.train` was called before it."""


@dataclass(slots=True)
class ExperimentStats:
    """Counts of a training up to its last finished epoch, and the episodes of that epoch."""

    total_epoch: int
    """Index of the last finished epoch."""
    total_itr: int
    """Number of the next iteration."""
    total_env_steps: int
    """env_steps collected for training, over all epochs."""
    last_episode: list[dict[str, object]] | None
    """Value of `step_episode` at the end of the last epoch; `None` unless episodes are stored."""

    def state_dict(self) -> StateTree:
        """Returns the counts and the episodes of the last epoch by name."""
        packed = pack(self.last_episode, "last_episode")
        return {
            "total_epoch": self.total_epoch,
            "total_itr": self.total_itr,
            "total_env_steps": self.total_env_steps,
            "last_episode": packed,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the counts and the episodes of the last epoch from `state`."""
        self.total_epoch, self.total_itr = int(state["total_epoch"]), int(state["total_itr"])
        self.total_env_steps = int(state["total_env_steps"])
        self.last_episode = unpack(state["last_episode"])


@dataclass(slots=True)
class TrainArgs:
    """Arguments of `train` or `resume`."""

    n_epochs: int
    """Total number of epochs, those before a resume included."""
    batch_size: int | None
    """Number of env_steps of a batch."""
    plot: bool
    """Whether to record a video of an episode after each epoch."""
    store_episodes: bool
    """Whether to save the last episodes in the snapshot."""
    pause_for_plot: bool
    """Whether to wait for Enter after each epoch."""
    start_epoch: int
    """Index of the first epoch."""

    def __post_init__(self) -> None:
        self.n_epochs = check_count(self.n_epochs, "n_epochs", 0)
        if self.batch_size is not None:
            self.batch_size = check_count(self.batch_size, "batch_size", 1)

    def replace(self, **changes: Any) -> "TrainArgs":
        """Returns a copy in which the fields whose new value is not `None` are replaced."""
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )


class LazySpool:
    """A telemetry spool that is opened when the first records are appended.

    It can be closed and is opened again by the next records.

    Args:
        directory: Returns the parent directory; called each time the spool is opened.
    """

    def __init__(self, directory: Callable[[], Path]) -> None:
        self._directory = directory
        self._writer: SpoolWriter | None = None

    def append(self, records: list[RunRecord]) -> int:
        """Appends records in one write; see `SpoolWriter.append`."""
        if self._writer is None:
            self._writer = SpoolWriter(self._directory() / SPOOL)
        return self._writer.append(records)

    def close(self) -> None:
        """Closes the files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class EpochRecorder(SpoolRecorder):
    """The recorder of a trainer: writes telemetry, and calls a function at the end of an epoch.

    Args:
        run: ID and metrics of the run.
        sink: Spool to which telemetry is appended.
        close_epoch: Called at the end of each epoch; writes the row of the epoch.
    """

    def __init__(
        self, run: RecordedRun, sink: LazySpool, close_epoch: Callable[[ClockView], None]
    ) -> None:
        super().__init__(run, sink)
        self._close_epoch = close_epoch
        self._returns: list[float] = []

    @property
    def average_return(self) -> float:
        """Mean undiscounted return of the episodes of the last recorded iteration.

        NaN if no episode ended.
        """
        return sum(self._returns) / len(self._returns) if self._returns else math.nan

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Records one iteration and keeps its episode returns."""
        self._returns = [end.episode_return for _, end in episodes]
        super().record_iteration(clock, episodes, reports)

    def record_epoch(self, clock: ClockView) -> None:
        """Calls `close_epoch`, which calls `record_statistics`."""
        self._close_epoch(clock)

    def record_statistics(
        self, clock: ClockView, stats: ExperimentStats, row: dict[str, Cell]
    ) -> None:
        """Records the end of an epoch, and the numbers of its row as points; then flushes."""
        for key, value in row.items():
            if not isinstance(value, str) and _SERIES.match(key):
                self.record_point(clock, key, float(value))
        counted = StillClock(
            **{name: getattr(clock, name) for name in StillClock.__dataclass_fields__}
        )
        super().record_epoch(
            replace(counted, iterations=stats.total_itr, env_steps=stats.total_env_steps)
        )
        self.flush()
