"""Curves, logs and events: the queries of the API and their answers."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, JsonValue, StringConstraints, field_validator, model_validator

from palestra.contract.documents import Document
from palestra.contract.filters import MAX_FILTER
from palestra.contract.names import MAX_STEP, SeriesName, Title
from palestra.contract.telemetry import Number, RunId
from palestra.contract.views import View


class LogView(View):
    """Consecutive lines of a run's log."""

    run_id: str
    lines: list["LogLine"]
    next_after: int
    """Pass as `after` to go on."""
    complete: bool
    """True when no later line is stored now."""
    open_lines: tuple["OpenLogLine", ...] = ()
    """The lines that follow and are not complete yet, such as progress bars.

    They replace those of every earlier answer. Empty unless the answer is `complete`.
    """


class OpenLogLine(View):
    """A line of a run's log that is not complete; its text is the newest one."""

    attempt_id: str
    stream: Literal["stdout", "stderr", "palestra"]
    wall: float
    text: str


class LogLine(OpenLogLine):
    """A complete line of a run's log."""

    n: int
    """Ordinal within the run, from 1."""


class SeriesInfo(View):
    """A series of a run, with the number of its points and its last value."""

    name: str
    points: int
    nonfinite: int
    last_env_step: int | None
    last_value: Number | None


CurveAxis = Literal["env_step", "update", "episode", "wall", "relative"]
"""What a chart may have on x. `relative` is the wall time since the run's first point, in seconds;
it is moved by whole buckets, so it is exact to the width of one.
"""


CurveColumn = Literal["min", "max", "mean", "last", "n", "nonfinite"]
"""A column of a curve on a grid."""
Statistic = Literal[
    "mean", "median", "iqm", "stdev", "stderr", "min", "max", "interval", "iqm_interval"
]
"""A statistic over the runs of a group; `interval` is the columns `low` and `high`, and
`iqm_interval` is `iqm_low` and `iqm_high`.
"""
DEFAULT_STATISTICS: tuple[Statistic, ...] = (
    "mean",
    "median",
    "iqm",
    "stdev",
    "stderr",
    "min",
    "max",
    "interval",
)
"""All but the interval of the interquartile mean, which takes several times as long."""
FieldPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=128)]
"""A member of a definition, for example `agent`, `env`, `agent.gamma` or `loop.env_steps`.

`agent` and `env` are the name of the agent and the ID of the environment; `experiment` and `seed`
are those of the run.
"""


class SeriesSelector(Document):
    """Names one curve: a run and one of its series."""

    run_id: RunId
    series: SeriesName


class SeriesGroup(Document):
    """Runs whose curves of one series are aggregated, usually the seeds of an experiment."""

    name: Title
    run_ids: Annotated[tuple[RunId, ...], Field(max_length=1_000)]
    series: SeriesName
    carry_forward: bool = False
    """Whether a run that succeeded counts on with its last finite value as far as others of the
    group have points.
    """

    @field_validator("run_ids")
    @classmethod
    def _runs_differ(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _check_different(value)


class Smoothing(Document):
    """How curves are smoothed, after they were put on the grid.

    Both kinds are debiased: the first value is the curve's own. Buckets without a value are left
    out.
    """

    kind: Literal["ema", "time_weighted"]
    """`ema`: each bucket with a value counts `weight` times the one after it. `time_weighted`: the
    count halves with every `half_life` of x, however many buckets have a value there.
    """
    weight: Annotated[float, Field(ge=0, lt=1)] | None = None
    half_life: Annotated[float, Field(gt=0)] | None = None
    """In units of x, seconds on times."""

    @model_validator(mode="after")
    def _parameter_fits(self) -> Self:
        if (self.kind == "ema") != (self.weight is not None) or (self.kind == "time_weighted") != (
            self.half_life is not None
        ):
            raise ValueError("must have a weight for `ema`, and a half_life for `time_weighted`")
        return self


class SeriesQuery(Document):
    """A query for curves on a common grid of buckets.

    Buckets are a power of two of the axis unit wide: of one on counters, of a millisecond on times.
    They begin at multiples of their width, so the first and the last one may reach beyond the
    range. `SeriesResult` states where they begin.
    """

    select: Annotated[tuple[SeriesSelector, ...], Field(max_length=1_000)] = ()
    """Single curves."""
    runs: Annotated[tuple[RunId, ...], Field(max_length=1_000)] = ()
    """Runs of which every series in `names` is answered."""
    experiments: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=128)], ...], Field(max_length=100)
    ] = ()
    """Experiments whose runs are added to `runs`."""
    filter: Annotated[str, StringConstraints(max_length=MAX_FILTER)] = ""
    """Filter of the list of runs (`GET /runs`), whose runs are added to `runs`; empty adds none."""
    names: Annotated[tuple[SeriesName, ...], Field(max_length=100)] = ()
    group_by: Annotated[tuple[FieldPath, ...], Field(max_length=5)] = ()
    """Fields of the definition: `runs` with equal values are a group of each series in `names`."""
    carry_forward: bool = False
    """Whether groups of `group_by` carry forward, as in `SeriesGroup`."""
    show_runs: bool = True
    """Whether the answer holds the curves of `runs`, or only their groups. Groups are over all data
    of all runs in either case.
    """
    groups: Annotated[tuple[SeriesGroup, ...], Field(max_length=100)] = ()
    """Groups whose runs are listed."""
    x: CurveAxis = "env_step"
    start: float | None = None
    """Lower end of the range on x, inclusive; `null` begins at the data."""
    end: float | None = None
    """Upper end, inclusive; `null` ends at the data."""
    buckets: Annotated[int, Field(ge=1, le=1_500)] = 1_000
    """Most buckets: the answer has more than half as many, or one per unit of a short range."""
    unit: Annotated[int, Field(ge=1, le=MAX_STEP)] = 1
    """Narrowest bucket on a counter: widths are this times a power of two.

    Only for curves of evaluations: with the distance of two evaluations, those of all seeds share
    their buckets.
    """
    columns: Annotated[tuple[CurveColumn, ...], Field(max_length=6)] = get_args(CurveColumn)
    """Columns of curves; others are empty in the answer."""
    statistics: Annotated[tuple[Statistic, ...], Field(max_length=9)] = DEFAULT_STATISTICS
    """Statistics of groups; others are empty in the answer."""
    smoothing: Smoothing | None = None
    include_superseded: bool = False

    @field_validator("runs", "names", "experiments", "group_by", "columns", "statistics")
    @classmethod
    def _items_differ(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _check_different(value)


def _check_different(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) != len(value):
        raise ValueError("must be different: name each once, since each counts once")
    return value


class GridSeries(View):
    """One curve with a value per bucket; `null` if a bucket holds no finite value."""

    run_id: str
    series: str
    min: list[float | None]
    max: list[float | None]
    mean: list[float | None]
    last: list[float | None]
    n: list[int]
    """Points per bucket, finite and not."""
    nonfinite: list[int]
    points: int
    """All points in the buckets."""
    smoothed: list[float | None] = Field(default_factory=list)
    """The mean, smoothed; empty without `smoothing`."""


class GridGroup(View):
    """Statistics over the runs of a group.

    Each bucket counts the mean of every run that has data there.
    """

    name: str
    series: str
    mean: list[float | None]
    median: list[float | None]
    stdev: list[float | None]
    """Sample standard deviation; `null` for one run."""
    stderr: list[float | None] = Field(default_factory=list)
    """Standard error of the mean: the deviation over the root of n; `null` for one run."""
    min: list[float | None]
    max: list[float | None]
    low: list[float | None]
    """Lower end of the 95 % bootstrap interval of the mean, which resamples runs within each
    environment; `null` with fewer than three runs in one.
    """
    high: list[float | None]
    iqm: list[float | None] = Field(default_factory=list)
    """Interquartile mean: a quarter of the runs, rounded down, is left out at each end."""
    iqm_low: list[float | None] = Field(default_factory=list)
    """Lower end of the interval of the interquartile mean."""
    iqm_high: list[float | None] = Field(default_factory=list)
    n: list[int]
    """Runs that the statistics are over: those with data in the bucket and those carried forward.
    """
    carried: list[int]
    """How many of them are over and count with their last value."""
    smoothed: list[float | None] = Field(default_factory=list)
    """The mean, smoothed; empty without `smoothing`."""
    by: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of `group_by` and their values in this group; empty for a group of listed runs."""
    run_ids: list[str] = Field(default_factory=list)
    """All runs of the group, those without data included."""


class SeriesResult(View):
    """Answer to a series query."""

    x: str
    grid: list[float]
    """Centre of each bucket: half-way between the lowest and highest multiple of the unit in it.
    """
    start: float
    """Where the first bucket begins."""
    end: float
    """Where the last bucket ends: the first position behind it."""
    width: float
    """Width of a bucket: bucket `i` holds what is in [start + i width, start + (i + 1) width)."""
    series: list[GridSeries]
    groups: list[GridGroup]
    cursor: int
    """Last event that the answer contains.

    Tail `GET /events?after=` from it without gap or overlap.
    """


class EventView(View):
    """One row of the event log, as the stream sends it."""

    id: int
    """Cursor."""
    type: str
    """`experiment`, `run`, `job`, `attempt`, `worker`, `snapshot`, `evaluation`, `points`, `log` or
    `stats`.
    """
    experiment_id: str | None
    run_id: str | None
    job_id: str | None
    at: datetime
    data: dict[str, Any]
    """The changed resource's view, or the new points of one run from one batch. Of a job and of its
    runs only `id` and the members that the change may have altered; of an experiment whose runs
    changed only `id`. Points:
    `{fence, seq, series: [{name, env_step, update, episode, wall, value}]}`, columns of equal
    length."""
