"""Groups the records of telemetry batches by run and by the table that stores them.

Pure: arrays and lists in, arrays and lists out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from app.metrics.columns import Columns, Floats, Ints
from app.metrics.logs import CUT, StoredLogLine, Stream
from app.metrics.point_tables import PointTable, join_series
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
    Table,
)

EPISODE_RETURN: Final = "episode/return"
EPISODE_LENGTH: Final = "episode/length"
SYSTEM_PREFIX: Final = "system/"
_NO_EXTRA: Final[Mapping[str, Mapping[str, Ints]]] = {}
VIRTUAL: Final[Mapping[str, EvaluationSource]] = {
    "evaluation": EvaluationSource.EVALUATION,
    "evaluation_on_train_data": EvaluationSource.TRAIN_DATA,
    "evaluation_of_test": EvaluationSource.TEST,
    "evaluation_stochastic": EvaluationSource.STOCHASTIC,
    "evaluation_greedy": EvaluationSource.GREEDY,
}
"""Prefixes of curves that are computed from the evaluations of a source; no record may use one."""
STATISTICS: Final = (
    "mean",
    "median",
    "stdev",
    "min",
    "max",
    "length_mean",
    "length_median",
    "length_stdev",
    "length_min",
    "length_max",
    "success_rate",
)
"""Names of the statistics of evaluations.

Each is a curve `evaluation/<name>`, or below the name of another source (`VIRTUAL`).
"""


def parse_evaluation_series(series: str) -> tuple[EvaluationSource, str] | None:
    """Returns the source and the statistic of a curve that is computed from evaluations.

    `None` for a stored curve.
    """
    prefix, slash, statistic = series.partition("/")
    return (VIRTUAL[prefix], statistic) if slash and prefix in VIRTUAL else None


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """A record of points or episodes that was decoded to arrays, with its axes and values.

    The numbers are valid as those of the contract's models are, and the columns have equal lengths.
    """

    run: str
    env_step: Ints
    update: Ints
    episode: Ints
    wall: Floats
    values: Mapping[str, Floats]
    extra: Mapping[str, Mapping[str, Ints]] = field(default_factory=dict)
    names: Collection[str] = ()
    """Names of the series that the sender chose."""

    def build_table(self, seq: int) -> PointTable:
        """Returns the points as those of the record `seq`."""
        seqs = np.full(len(self.wall), seq, np.int64)
        return PointTable(
            seqs, self.env_step, self.update, self.episode, self.wall, self.values, self.extra
        )


class NumberedRecord(NamedTuple):
    """A record and its sequence number."""

    seq: int
    record: Record | DecodedTable


class RunProgress(NamedTuple):
    """The counters of a run."""

    env_step: int
    update: int
    episode: int


@dataclass(slots=True)
class RunRecords:
    """The records of a batch that belong to one run."""

    tables: list[PointTable] = field(default_factory=list)
    lines: list[StoredLogLine] = field(default_factory=list)
    open_lines: dict[Stream, list[StoredLogLine]] = field(default_factory=dict)
    """The newest open lines of each stream that wrote to the log."""
    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)
    stats: list[tuple[int, EpochStatsRecord]] = field(default_factory=list)
    snapshots: list[tuple[int, SnapshotWritten]] = field(default_factory=list)
    progress: RunProgress | None = None

    @property
    def series(self) -> dict[str, Columns]:
        """The points of each series."""
        return join_series(self.tables)


def sort(records: Iterable[NumberedRecord]) -> dict[str, RunRecords]:
    """Returns the records grouped by run; within a group they keep their order."""
    found: dict[str, RunRecords] = {}
    for seq, record in records:
        run = found.setdefault(record.run, RunRecords())
        _take(seq, record, run)
        run.progress = _farther(run.progress, _reached(record))
    return found


def writes_training_state(record: Record | DecodedTable) -> bool:
    """Returns whether only an attempt that holds its run's fence may send the record."""
    training_evaluation = (
        isinstance(record, Evaluation)
        and record.snapshot_id is None
        and record.source is not EvaluationSource.TEST
    )
    return training_evaluation or isinstance(
        record, DecodedTable | Points | Table | Episodes | EpochStatsRecord | SnapshotWritten
    )


def _take(seq: int, record: Record | DecodedTable, run: RunRecords) -> None:
    match record:
        case DecodedTable():
            run.tables.append(record.build_table(seq))
        case Points():
            run.tables.append(_build_table(seq, record, {record.series: record.value}))
        case Table():
            run.tables.append(_build_table(seq, record, record.series))
        case Episodes():
            run.tables.append(_build_episodes(seq, record))
        case SystemMetrics():
            run.tables.append(_build_system(seq, record))
        case Evaluation():
            run.evaluations.append((seq, record))
        case EpochStatsRecord():
            run.stats.append((seq, record))
        case SnapshotWritten():
            run.snapshots.append((seq, record))
        case LogLines() | Note():
            _take_log(record, run)


def _build_table(
    seq: int,
    at: Points | Episodes | Table,
    values: Mapping[str, Sequence[float]],
    extra: Mapping[str, Mapping[str, Ints]] = _NO_EXTRA,
) -> PointTable:
    return PointTable(
        np.full(len(at.wall), seq, np.int64),
        np.array(at.env_step, np.int64),
        np.array(at.update, np.int64),
        np.array(at.episode, np.int64),
        np.array(at.wall, np.float64),
        {name: np.array(column, np.float64) for name, column in values.items()},
        extra,
    )


def _build_episodes(seq: int, record: Episodes) -> PointTable:
    values: dict[str, Sequence[float]] = {
        EPISODE_RETURN: record.episode_return,
        EPISODE_LENGTH: record.episode_length,
    }
    extra = {
        "env_index": np.array(record.env_index, np.int64),
        "terminated": np.array(record.terminated, np.int64),
    }
    return _build_table(seq, record, values, {EPISODE_LENGTH: extra})


def _build_system(seq: int, record: SystemMetrics) -> PointTable:
    values = {
        SYSTEM_PREFIX + name: np.array([value], np.float64) for name, value in record.values.items()
    }
    return PointTable(
        np.array([seq], np.int64),
        np.array([record.env_step], np.int64),
        np.array([record.update], np.int64),
        np.array([record.episode], np.int64),
        np.array([record.wall], np.float64),
        values,
    )


def _take_log(record: LogLines | Note, run: RunRecords) -> None:
    if isinstance(record, Note):
        text = f"{record.code}: {record.message}"
        run.lines.append(StoredLogLine("palestra", record.wall, text))
        return
    run.lines += (StoredLogLine(record.stream, record.wall, text) for text in record.lines)
    if record.truncated:
        text = f"{record.truncated} {CUT}"
        run.lines.append(StoredLogLine("palestra", record.wall, text))
    run.open_lines[record.stream] = [
        StoredLogLine(record.stream, record.wall, text) for text in record.open_lines
    ]


def _reached(record: Record | DecodedTable) -> RunProgress | None:
    match record:
        case DecodedTable():
            return RunProgress(
                int(record.env_step.max()), int(record.update.max()), int(record.episode.max())
            )
        case Points() | Episodes() | Table():
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
