"""Telemetry that the supervisor adds to that of the trainer.

It records the trainer's output, its resource usage, and messages of the supervisor.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast, get_args

from palestra.contract.names import CompileMode, TrainerPhase
from palestra.contract.telemetry import RunRecord, SystemMetrics
from palestra.telemetry.spool import SpoolWriter
from workers.ipc import run_log
from workers.ipc.attempt_directory import AttemptDirectory, read_json
from workers.ipc.full_disk import is_full_error
from workers.ipc.json_log import Logger
from workers.supervisor.log_tail import LogTail
from workers.supervisor.resource_usage import ResourceSampler

SYSTEM_EVERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TrainerProgress:
    """The progress that the trainer reports."""

    env_step: int = 0
    update: int = 0
    episode: int = 0
    raw: dict[str, object] = field(default_factory=dict)
    """The whole content of the progress file."""

    @classmethod
    def read(cls, path: Path) -> "TrainerProgress":
        """Reads the progress file; counters that are missing are 0."""
        raw = read_json(path)
        return cls(
            _counter(raw, "env_step"), _counter(raw, "update"), _counter(raw, "episode"), raw
        )

    @property
    def phase(self) -> TrainerPhase | None:
        """What the trainer does while it does not train; it starts until it writes the file."""
        if not self.raw:
            return "starting"
        return "compiling" if self.raw.get("compiling") is True else None

    @property
    def compile(self) -> CompileMode | None:
        """How updates run, as the trainer decided; `None` before it has."""
        mode = self.raw.get("compile")
        return cast("CompileMode", mode) if mode in get_args(CompileMode) else None


class Observer:
    """Appends the trainer's output and resource usage to the attempt's spool.

    On a full disk the supervisor's records are dropped, to leave space for the trainer's; the
    supervisor logs this once.

    Args:
        directory: Directory of the attempt.
        runs: The runs of the attempt; output and resource usage are recorded for the first.
        spool: Receives the records.
        sampler: Measures the resource usage.
        log: The supervisor's log.
        prefix: Prefix of the series names of the resource usage, so that a job that runs beside the
            training does not write to the training's curves.
    """

    def __init__(
        self,
        directory: AttemptDirectory,
        runs: Sequence[str],
        spool: SpoolWriter,
        sampler: ResourceSampler,
        log: Logger,
        *,
        prefix: str = "",
    ) -> None:
        self._prefix = prefix
        self._directory = directory
        self._runs = runs
        self._run = runs[0]
        self._spool = spool
        self._sampler = sampler
        self._log = log
        self._tail = LogTail(directory.trainer_log, self._run)
        self._sampled = time.monotonic()
        self._is_disk_full = False

    @property
    def last_line(self) -> str:
        """Last line of the trainer's output."""
        return self._tail.last_line

    def progress(self) -> TrainerProgress:
        """Returns the trainer's progress."""
        return TrainerProgress.read(self._directory.progress)

    def poll(self, now: float, pids: Callable[[], Iterable[int]]) -> None:
        """Records new output and, every `SYSTEM_EVERY_SECONDS`, the resource usage.

        Args:
            now: Time of the monotonic clock.
            pids: Returns the trainer's processes; called only for a measurement.
        """
        self._record(self._tail.poll())
        if now - self._sampled >= SYSTEM_EVERY_SECONDS:
            self._sampled = now
            self._record([self._sample(pids())])

    def finish(self) -> None:
        """Records the remaining output."""
        self._record(self._tail.finish())

    def log(self, *texts: str, to: Iterable[str] | None = None) -> None:
        """Appends lines to the logs of the runs `to`, by default of all runs of the attempt."""
        for run in self._runs if to is None else to:
            self._record(run_log.log_records(run, texts))

    def _sample(self, pids: Iterable[int]) -> SystemMetrics:
        at = self.progress()
        values = {self._prefix + name: value for name, value in self._sampler.sample(pids).items()}
        return SystemMetrics(
            run=self._run,
            wall=time.time(),
            env_step=at.env_step,
            update=at.update,
            episode=at.episode,
            values=values,
        )

    def _record(self, records: Iterable[RunRecord]) -> None:
        try:
            found = list(records)
            if found:
                self._spool.append(found)
        except OSError as error:
            if not is_full_error(error):
                raise
            if not self._is_disk_full:
                self._log.error("spool.disk_full")
            self._is_disk_full = True


def _counter(raw: Mapping[str, object], name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) and value >= 0 else 0
