"""Groups the records of telemetry batches by run and by the table that stores them.

Pure: arrays and lists in, arrays and lists out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from app.metrics.blocks import UNKNOWN, Columns
from app.metrics.logs import CUT, StoredLogLine
from palestra.contract.names import EvaluationSource
from palestra.contract.telemetry import (
    Episodes,
    EpochStatsRecord,
    Evaluation,
    LogLines,
    Note,
    Points,
    Record,
    SnapshotWritten,
    SystemMetrics,
)

EPISODE_RETURN: Final = "episode/return"
EPISODE_LENGTH: Final = "episode/length"
SYSTEM_PREFIX: Final = "system/"
_NO_EXTRA: Final[Mapping[str, Sequence[int]]] = {}
VIRTUAL: Final[Mapping[str, EvaluationSource]] = {
    "evaluation": EvaluationSource.EVALUATION,
    "evaluation_on_train_data": EvaluationSource.TRAIN_DATA,
    "evaluation_of_test": EvaluationSource.TEST,
}
"""Prefixes of curves that are computed from the evaluations of a source; no record may use one."""


def parse_evaluation_series(series: str) -> tuple[EvaluationSource, str] | None:
    """Returns the source and the statistic of a curve that is computed from evaluations.

    `None` for a stored curve.
    """
    prefix, slash, statistic = series.partition("/")
    return (VIRTUAL[prefix], statistic) if slash and prefix in VIRTUAL else None


class NumberedRecord(NamedTuple):
    """A record and its sequence number."""

    seq: int
    record: Record


class RunProgress(NamedTuple):
    """The counters of a run."""

    env_step: int
    update: int
    episode: int


@dataclass(slots=True)
class RunRecords:
    """The records of a batch that belong to one run."""

    series: dict[str, Columns] = field(default_factory=dict)
    lines: list[StoredLogLine] = field(default_factory=list)
    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)
    stats: list[tuple[int, EpochStatsRecord]] = field(default_factory=list)
    snapshots: list[tuple[int, SnapshotWritten]] = field(default_factory=list)
    progress: RunProgress | None = None


@dataclass(slots=True)
class _Curve:
    """Columns under construction, as plain lists, which grow faster than arrays."""

    seq: list[int] = field(default_factory=list)
    env_step: list[int] = field(default_factory=list)
    update: list[int] = field(default_factory=list)
    episode: list[int] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    extra: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self,
        seq: int,
        at: "Points | Episodes",
        value: Sequence[float],
        extra: Mapping[str, Sequence[int]] = _NO_EXTRA,
    ) -> None:
        for name in self.extra.keys() | extra.keys():
            column = self.extra.setdefault(name, [UNKNOWN] * len(self.value))
            column.extend(extra.get(name) or [UNKNOWN] * len(value))
        self.seq.extend([seq] * len(value))
        self.env_step.extend(at.env_step)
        self.update.extend(at.update)
        self.episode.extend(at.episode)
        self.wall.extend(at.wall)
        self.value.extend(value)

    def columns(self) -> Columns:
        ints = (
            np.array(column, np.int64)
            for column in (self.seq, self.env_step, self.update, self.episode)
        )
        seq, env_step, update, episode = ints
        extra = {name: np.array(column, np.int64) for name, column in self.extra.items()}
        return Columns(
            seq,
            env_step,
            update,
            episode,
            np.array(self.wall, np.float64),
            np.array(self.value, np.float64),
            extra,
        )


def sort(records: Iterable[NumberedRecord]) -> dict[str, RunRecords]:
    """Returns the records grouped by run; within a group they keep their order."""
    curves: dict[str, dict[str, _Curve]] = {}
    found: dict[str, RunRecords] = {}
    for seq, record in records:
        run = found.setdefault(record.run, RunRecords())
        _take(seq, record, run, curves.setdefault(record.run, {}))
        run.progress = _farther(run.progress, _reached(record))
    for run_id, of_run in curves.items():
        found[run_id].series = {name: curve.columns() for name, curve in of_run.items()}
    return found


def writes_training_state(record: Record) -> bool:
    """Returns whether only an attempt that holds its run's fence may send the record."""
    training_evaluation = (
        isinstance(record, Evaluation)
        and record.snapshot_id is None
        and record.source is not EvaluationSource.TEST
    )
    return training_evaluation or isinstance(
        record, Points | Episodes | EpochStatsRecord | SnapshotWritten
    )


def _take(seq: int, record: Record, run: RunRecords, curves: dict[str, _Curve]) -> None:
    match record:
        case Points():
            curves.setdefault(record.series, _Curve()).add(seq, record, record.value)
        case Episodes():
            _take_episodes(seq, record, curves)
        case SystemMetrics():
            for name, value in record.values.items():
                curve = curves.setdefault(SYSTEM_PREFIX + name, _Curve())
                at = {
                    "env_step": (record.env_step,),
                    "update": (record.update,),
                    "episode": (record.episode,),
                    "wall": (record.wall,),
                }
                curve.add(seq, Points.model_construct(**at), (value,))  # type: ignore[arg-type]
        case Evaluation():
            run.evaluations.append((seq, record))
        case EpochStatsRecord():
            run.stats.append((seq, record))
        case SnapshotWritten():
            run.snapshots.append((seq, record))
        case LogLines() | Note():
            run.lines.extend(_lines(record))


def _take_episodes(seq: int, record: Episodes, curves: dict[str, _Curve]) -> None:
    curves.setdefault(EPISODE_RETURN, _Curve()).add(seq, record, record.episode_return)
    extra = {
        "env_index": record.env_index,
        "terminated": [int(ended) for ended in record.terminated],
    }
    curves.setdefault(EPISODE_LENGTH, _Curve()).add(
        seq, record, [float(length) for length in record.episode_length], extra
    )


def _lines(record: LogLines | Note) -> Iterator[StoredLogLine]:
    if isinstance(record, Note):
        yield StoredLogLine("palestra", record.wall, f"{record.code}: {record.message}")
        return
    yield from (StoredLogLine(record.stream, record.wall, text) for text in record.lines)
    if record.truncated:
        yield StoredLogLine("palestra", record.wall, f"{record.truncated} {CUT}")


def _reached(record: Record) -> RunProgress | None:
    match record:
        case Points() | Episodes():
            return RunProgress(max(record.env_step), max(record.update), max(record.episode))
        case EpochStatsRecord():
            return RunProgress(record.total_env_steps, record.update, record.episode)
        case Evaluation(snapshot_id=None) | SystemMetrics() | SnapshotWritten():
            return RunProgress(record.env_step, record.update, record.episode)
        case _:
            return None


def _farther(one: RunProgress | None, other: RunProgress | None) -> RunProgress | None:
    if one is None or other is None:
        return one or other
    return RunProgress(
        max(one.env_step, other.env_step),
        max(one.update, other.update),
        max(one.episode, other.episode),
    )
