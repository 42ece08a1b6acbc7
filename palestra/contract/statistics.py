"""Statistics over runs and environments: the query of the API and its answer."""

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, JsonValue, StringConstraints, model_validator

from palestra.contract.documents import Document
from palestra.contract.filters import MAX_FILTER
from palestra.contract.names import EvaluationSource, Title
from palestra.contract.queries import FieldPath
from palestra.contract.telemetry import RunId
from palestra.contract.views import View

EnvironmentId = Annotated[str, StringConstraints(min_length=1, max_length=256)]
StatisticsPart = Literal["aggregates", "profile", "improvement", "paired", "efficiency"]
"""A part of the answer.

`aggregates`: mean, median, interquartile mean and optimality gap. `profile`: the share of scores
above each threshold. `improvement`: the probability of improvement for each pair of groups.
`paired`: differences of each pair of groups over runs of the same environment and seed.
`efficiency`: the interquartile mean over env_steps.
"""
Aggregate = Literal["mean", "median", "iqm", "optimality_gap"]
"""Name of an aggregate over all scores of a group."""
PARTS: Final[tuple[StatisticsPart, ...]] = get_args(StatisticsPart)
MAX_SEED: Final = 2**63 - 1
MAX_SCORE: Final = 1e100
"""Largest size of a score, so that sums and squares of scores are finite."""


class StatisticsGroup(Document):
    """Runs that are listed as one group, for example all of one agent."""

    name: Title
    run_ids: Annotated[tuple[RunId, ...], Field(max_length=2_000)]


class ScoreRule(Document):
    """How a run's evaluations become one score."""

    kind: Literal["final", "area", "max"] = "final"
    """`final`: the mean over the episodes of the last evaluations. `area`: the mean height of the
    evaluation curve over env_steps. `max`: the best evaluation, which favours noisy training.
    """
    last: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Number of last evaluations that count in `final`."""
    source: EvaluationSource = EvaluationSource.EVALUATION
    missing: Literal["refuse", "leave_out"] = "refuse"
    """What happens to runs with too few evaluations, to a score that is not finite or beyond 1e100,
    and to environments that the normalisation has no scale for: the query is refused, or the answer
    lists the runs in `left_out`.
    """


class ReferenceScores(Document):
    """The raw scores of an environment that become 0 and 1."""

    random: Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE)]
    reference: Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE)]

    @model_validator(mode="after")
    def _scores_differ(self) -> Self:
        if self.random == self.reference:
            raise ValueError("must differ: the two scores become 0 and 1")
        return self


class Normalisation(Document):
    """How raw scores become comparable between environments."""

    kind: Literal["table", "given", "min_max"]
    """`table`: by published scores. `given`: by `references` alone. `min_max`: by the lowest and
    the highest score of each environment in this query, so it says nothing about other queries.
    """
    table: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Name of a table with its version: `atari-human-1` or `mujoco-d4rl-1`."""
    references: Annotated[dict[EnvironmentId, ReferenceScores], Field(max_length=1_000)] = Field(
        default_factory=dict
    )
    """Scores by environment ID; they go before those of the table."""

    @model_validator(mode="after")
    def _members_fit(self) -> Self:
        if (self.kind == "table") != (self.table is not None):
            raise ValueError("must have a `table` for the kind `table`, and for no other")
        if (self.kind == "given" and not self.references) or (
            self.kind == "min_max" and self.references
        ):
            raise ValueError("must have `references` for the kind `given`, and none for `min_max`")
        return self


class StatisticsQuery(Document):
    """A query for statistics over runs.

    The runs are those of `runs`, `experiments` and `filter`, grouped by `group_by`, and those of
    `groups`.
    """

    runs: Annotated[tuple[RunId, ...], Field(max_length=2_000)] = ()
    experiments: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=128)], ...], Field(max_length=500)
    ] = ()
    """Experiments whose runs are added to `runs`."""
    filter: Annotated[str, StringConstraints(max_length=MAX_FILTER)] = ""
    """Filter of the list of runs (`GET /runs`), whose runs are added to `runs`; empty adds none."""
    group_by: Annotated[tuple[FieldPath, ...], Field(min_length=1, max_length=5)] = ("experiment",)
    """Fields of the definition: runs with equal values are a group.

    `agent` pools the experiments of an agent; `EnvironmentStatistics.differing_fields` says in what
    their definitions differ.
    """
    groups: Annotated[tuple[StatisticsGroup, ...], Field(max_length=30)] = ()
    """Groups whose runs are listed."""
    score: ScoreRule = ScoreRule()
    normalisation: Normalisation | None = None
    """`null` leaves scores as they are: then all runs must be of one environment."""
    parts: Annotated[tuple[StatisticsPart, ...], Field(max_length=5)] = ("aggregates",)
    """Parts of the answer; scores of runs and environments are always there."""
    aggregate: Literal["mean", "median", "iqm"] = "iqm"
    """Aggregate of paired differences and of the advice on seeds."""
    gamma: Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE)] | None = None
    """Threshold of the optimality gap; `null` is 1 on normalised scores, and no gap on raw ones."""
    thresholds: Annotated[int, Field(ge=2, le=500)] = 101
    """Number of thresholds of a profile, from the lowest to the highest score."""
    positions: Annotated[int, Field(ge=2, le=500)] = 50
    """Number of positions on env_step of a sample-efficiency curve."""
    resamples: Annotated[int, Field(ge=100, le=50_000)] = 2_000
    """Bootstrap resamples of intervals."""
    curve_resamples: Annotated[int, Field(ge=100, le=5_000)] = 500
    """Bootstrap resamples of each position of a sample-efficiency curve."""
    level: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    """Coverage of intervals."""
    rng_seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Seed of the resamples: the same query of the same data gives the same intervals."""


class EstimateView(View):
    """A statistic and its bootstrap interval."""

    value: float
    low: float | None
    """Lower end; `null` with fewer than three seeds in an environment."""
    high: float | None


class RunScore(View):
    """The score of one run."""

    run_id: str
    environment: str
    seed: int
    raw: float
    """Score as the evaluations give it."""
    score: float
    """Normalised score; the raw one without normalisation."""
    evaluations: int
    """Number of evaluations that the score is over."""


class EnvironmentStatistics(View):
    """Raw scores of a group in one environment."""

    environment: str
    n: int
    """Runs with a score."""
    experiments: int
    """Experiments of these runs."""
    differing_fields: list[str]
    """Fields in which the definitions of these experiments differ, apart from names and notes."""
    mean: float
    median: float
    stdev: float | None
    """Sample standard deviation; `null` for one run."""
    iqm: EstimateView


class ProfileView(View):
    """Share of a group's scores above each of `StatisticsResult.thresholds`."""

    share: list[float]
    low: list[float] | None
    """Lower end of the pointwise interval; `null` with fewer than three seeds."""
    high: list[float] | None


class EfficiencyView(View):
    """A group's interquartile mean at each of `StatisticsResult.grid`."""

    iqm: list[float | None]
    """`null` where no run is in range."""
    low: list[float | None]
    high: list[float | None]
    n: list[int]
    """Runs in range: where it changes, so do the runs that the curve is over."""


class SeedAdviceView(View):
    """Whether a group has enough seeds to be told apart from its best rival."""

    rival: str | None
    """The other group with the highest aggregate; `null` without another group."""
    difference: float | None
    """Aggregate of the group less that of the rival."""
    width: float | None
    """Width of the group's interval; `null` with fewer than three seeds."""
    enough: bool
    """Whether the interval is narrower than the difference."""
    seeds: int | None
    """Seeds per environment at which the two would be equal; `null` if that cannot be said."""
    sentence: str


class GroupStatistics(View):
    """Scores and statistics of one group."""

    name: str
    by: dict[str, JsonValue]
    """Fields of `group_by` and their values; empty for a listed group."""
    run_ids: list[str]
    """All runs of the group, those without a score included."""
    scores: list[RunScore]
    environments: list[EnvironmentStatistics]
    seeds: int
    """Fewest scores that any of its environments has."""
    aggregates: dict[Aggregate, EstimateView]
    profile: ProfileView | None
    efficiency: EfficiencyView | None
    advice: SeedAdviceView | None
    """With `aggregates` only."""


class PairStatistics(View):
    """Comparison of two groups over the environments that both have."""

    first: str
    second: str
    environments: list[str]
    improvement: EstimateView | None
    """How likely a run of `first` scores higher than one of `second`: the mean over environments of
    P(X > Y) + P(X = Y) / 2.
    """
    paired: EstimateView | None
    """Aggregate of `first` less that of `second` over `pairs`; `null` without pairs."""
    pairs: int
    """Pairs of runs of the same environment and seed."""


class LeftOutRun(View):
    """A run that has no score."""

    run_id: str
    reason: str


class StatisticsMethod(View):
    """What is needed to compute the answer again."""

    score: str
    """How a run's score was computed, in words for a caption."""
    normalisation: str | None
    """Source of the references, in words for a caption."""
    resamples: int
    curve_resamples: int
    level: float
    rng_seed: int
    generator: str
    """Bit generator that the seed belongs to."""
    data_hash: str
    """SHA-256 over the raw scores of all groups: equal for equal data."""


class StatisticsResult(View):
    """Answer to a query for statistics."""

    groups: list[GroupStatistics]
    pairs: list[PairStatistics]
    environments: list[str]
    """All environments of the runs. A group without one of them has a missing cell."""
    thresholds: list[float]
    grid: list[float]
    """Positions on env_step of sample-efficiency curves."""
    left_out: list[LeftOutRun]
    notes: list[str]
    """Sentences on what the statistics do not say, for the caption of a figure."""
    method: StatisticsMethod
    cursor: int
    """Last event that the answer contains."""
