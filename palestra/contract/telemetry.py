"""Telemetry records and batches, which carry curves, logs and snapshots to the server.

Every record names its run. Records of one attempt are numbered from 1 without gaps (`seq`) in the
order of its spool; a batch carries consecutive ones. Numbers that may be non-finite travel as JSON
numbers or as the strings "NaN", "Infinity" and "-Infinity".
"""

import math
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, model_validator

from palestra.contract.documents import Document
from palestra.contract.names import Counter, EvaluationSource, SeriesName, Sha256
from palestra.contract.states import SnapshotReason

_Model = TypeVar("_Model", bound=Document)

MAX_BATCH_BYTES = 1_048_576
MAX_BATCH_RECORDS = 5_000
MAX_LOG_LINE = 32_768
MAX_OPEN_LINE = 1_000
"""Characters of an open line, which is sent again whenever it changes."""
MAX_OPEN_LINES = 16
"""Open lines of one stream of an attempt."""
MAX_SERIES_PER_RUN = 2_000
MAX_COLUMN = 65_536
"""Entries of each column of one record of points or episodes."""
MAX_EVALUATION_RETURNS = 100_000

_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _read_number(value: Any) -> Any:
    if isinstance(value, str):
        if value not in _SPECIAL:
            raise ValueError('must be a number or one of "NaN", "Infinity", "-Infinity"')
        return _SPECIAL[value]
    return value


def write_number(value: float) -> float | str:
    """Returns the JSON form of a number that may not be finite."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


Number = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(_read_number, json_schema_input_type=float | str),
    PlainSerializer(write_number, float | str, "json"),
]
"""A float64 that may be NaN or infinite; JSON number or string on the wire."""

RunId = Annotated[str, StringConstraints(pattern=r"^run_[0-9a-z]{26}$")]
SnapshotId = Annotated[str, StringConstraints(pattern=r"^snp_[0-9a-z]{26}$")]
WallTime = Annotated[float, Field(ge=-1e11, le=1e11)]
"""Seconds since the Unix epoch by the worker's clock. It is stored as data; nothing is ordered by
it.
"""


class RunRecord(Document):
    """Base of records that belong to one run."""

    run: RunId


class Points(RunRecord):
    """Values of one series, in columns of equal length."""

    type: Literal["points"] = "points"
    series: SeriesName
    env_step: Annotated[tuple[Counter, ...], Field(min_length=1, max_length=MAX_COLUMN)]
    update: tuple[Counter, ...]
    episode: tuple[Counter, ...]
    wall: tuple[WallTime, ...]
    value: tuple[Number, ...]

    @model_validator(mode="after")
    def _columns_match(self) -> Self:
        return _equal_columns(self, ("env_step", "update", "episode", "wall", "value"))


class Table(RunRecord):
    """Values of several series at the same positions: the axes once, a column per series.

    All columns have equal length. A series may be part of several records.
    """

    type: Literal["table"] = "table"
    env_step: Annotated[tuple[Counter, ...], Field(min_length=1, max_length=MAX_COLUMN)]
    update: tuple[Counter, ...]
    episode: tuple[Counter, ...]
    wall: tuple[WallTime, ...]
    series: Annotated[
        dict[SeriesName, tuple[Number, ...]], Field(min_length=1, max_length=MAX_SERIES_PER_RUN)
    ]
    """Values by the name of the series."""

    @model_validator(mode="after")
    def _columns_match(self) -> Self:
        lengths = {name: len(column) for name, column in self.series.items()}
        if set(lengths.values()) != {len(self.env_step)}:
            wrong = next(name for name in lengths if lengths[name] != len(self.env_step))
            raise ValueError(
                f"columns must have equal lengths: env_step has {len(self.env_step)}, "
                f"series {wrong} {lengths[wrong]}"
            )
        return _equal_columns(self, ("env_step", "update", "episode", "wall"))


class Episodes(RunRecord):
    """Finished training episodes, in columns of equal length.

    The server shows them as `episode/return` and `episode/length`.
    """

    type: Literal["episodes"] = "episodes"
    env_index: Annotated[tuple[Counter, ...], Field(min_length=1, max_length=MAX_COLUMN)]
    env_step: tuple[Counter, ...]
    update: tuple[Counter, ...]
    episode: tuple[Counter, ...]
    """Number of the episode within the run, from 1."""
    wall: tuple[WallTime, ...]
    episode_return: tuple[Number, ...]
    episode_length: tuple[Counter, ...]
    terminated: tuple[bool, ...]
    """True where the episode ended in a terminal state, false where it was truncated."""

    @model_validator(mode="after")
    def _columns_match(self) -> Self:
        names = (
            "env_index",
            "env_step",
            "update",
            "episode",
            "wall",
            "episode_return",
            "episode_length",
            "terminated",
        )
        return _equal_columns(self, names)


class Evaluation(RunRecord):
    """One evaluation: exploration off, a separate environment; `source` states the seeds."""

    type: Literal["evaluation"] = "evaluation"
    env_step: Counter
    update: Counter
    episode: Counter
    wall: WallTime
    episodes: Annotated[int, Field(ge=1)]
    """Episodes counted."""
    mean: Number
    median: Number
    stdev: Number
    """Sample standard deviation (n - 1); 0 for one episode."""
    min: Number
    max: Number
    length_mean: Number
    length_median: Number
    length_stdev: Number
    length_min: Number
    length_max: Number
    returns: Annotated[tuple[Number, ...], Field(max_length=MAX_EVALUATION_RETURNS)] = ()
    """Return of each counted episode, in start order."""
    success_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the episodes whose last info called them a success (`is_success` or `success`).

    `null` if the environment reports no success.
    """
    cut_episodes: Annotated[Counter | None, Field(exclude_if=lambda value: value is None)] = None
    """Counted episodes that were cut after `DEFAULT_EPISODE_STEPS` env_steps.

    `null`, and left out, if the definition or the environment limits episodes.
    """
    seed: Counter
    """Seed that the episodes derive from."""
    snapshot_id: SnapshotId | None = None
    """Snapshot that was evaluated; `null` during training."""
    final: bool = False
    """True for the evaluation at the end of training."""
    source: EvaluationSource = EvaluationSource.EVALUATION
    """Which episodes; each source is a series of its own."""
    metrics: Annotated[dict[SeriesName, Number], Field(max_length=64)] = Field(default_factory=dict)
    """Means over the examples of a supervised evaluation, by name.

    Each is a curve beside the statistics. Such an evaluation counts its pass over the input as one
    episode: the return is the score (see `SupervisedEvaluation.goal`), the length the number of
    batches.
    """


class EpochStatsRecord(RunRecord):
    """Statistics of a run after an epoch (garage's ExperimentStats)."""

    type: Literal["experiment_stats"] = "experiment_stats"
    total_epoch: Counter
    """Index of the last finished epoch."""
    total_itr: Counter
    """Iterations finished."""
    total_env_steps: Counter
    last_episode: tuple[dict[str, Number], ...] | None = None
    """Summaries (`episode_return`, `episode_length`) of the episodes finished in the last epoch.

    `null` when none finished.
    """
    update: Counter
    episode: Counter
    wall: WallTime


class LogLines(RunRecord):
    """Lines of the trainer's output.

    The open lines of a record replace those of the record before it, of the same attempt, run and
    stream. A record with neither complete nor open lines removes them.
    """

    type: Literal["log"] = "log"
    stream: Literal["stdout", "stderr", "palestra"]
    wall: WallTime
    lines: Annotated[
        tuple[Annotated[str, Field(max_length=MAX_LOG_LINE)], ...],
        Field(max_length=1_000),
    ]
    open_lines: Annotated[
        tuple[Annotated[str, Field(max_length=MAX_OPEN_LINE)], ...],
        Field(max_length=MAX_OPEN_LINES, exclude_if=lambda value: not value),
    ] = ()
    """Text so far of the lines after `lines` that are not complete, such as progress bars.

    Servers that take them say so when an attempt is claimed (`ClaimAnswer.takes_open_lines`).
    """
    truncated: Annotated[int, Field(ge=0)] = 0
    """Characters that were cut from over-long lines without a note in the line."""


class SystemMetrics(RunRecord):
    """Resource use of the trainer, sampled by its supervisor.

    The server shows each value as `system/<name>`.
    """

    type: Literal["system"] = "system"
    wall: WallTime
    env_step: Counter
    update: Counter
    episode: Counter
    values: Annotated[dict[SeriesName, Number], Field(min_length=1, max_length=64)]


class SnapshotFile(Document):
    """Name, size and hash of a file of a snapshot."""

    name: Annotated[
        str,
        Field(
            max_length=128,
            pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,3}$",
        ),
    ]
    """Relative to the snapshot's directory.

    Agents that write their own files may use directories.
    """
    size: Counter
    sha256: Sha256


class SnapshotWritten(RunRecord):
    """A snapshot is complete on the worker's disk.

    It counts on the server once every file is uploaded and verified.
    """

    type: Literal["snapshot"] = "snapshot"
    snapshot_id: SnapshotId
    reason: SnapshotReason
    env_step: Counter
    update: Counter
    episode: Counter
    wall: WallTime
    format_version: Annotated[int, Field(ge=1)]
    resume_exact: bool
    """Whether a resume from it can be bit-exact."""
    score: Number | None = None
    """Mean return, or the score of a supervised run, of the latest evaluation at this state.

    Decides `best`.
    """
    files: Annotated[tuple[SnapshotFile, ...], Field(min_length=1, max_length=4_096)]


class Note(RunRecord):
    """A notice about an attempt that the run's page shows."""

    type: Literal["note"] = "note"
    wall: WallTime
    code: Annotated[str, Field(pattern=r"^[a-z_]{1,64}$")]
    """For example `resume_statistical`, `points_dropped`, `env_not_deterministic`."""
    message: Annotated[str, Field(max_length=2_000)]


Record = Annotated[
    Points
    | Table
    | Episodes
    | Evaluation
    | EpochStatsRecord
    | LogLines
    | SystemMetrics
    | SnapshotWritten
    | Note,
    Field(discriminator="type"),
]


class TelemetryBatch(Document):
    """Consecutive records of one attempt."""

    first_seq: Annotated[int, Field(ge=1, le=2**53 - 1)]
    records: Annotated[tuple[Record, ...], Field(min_length=1, max_length=MAX_BATCH_RECORDS)]


class TelemetryAck(Document):
    """Answer to a batch: all records up to the number `acked_seq` are committed."""

    acked_seq: Counter


def _equal_columns(record: _Model, names: tuple[str, ...]) -> _Model:
    lengths = {name: len(getattr(record, name)) for name in names}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns must have equal lengths, not {lengths}")
    return record
