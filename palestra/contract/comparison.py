"""Comparison of runs: the query of the API and its answer."""

from typing import Annotated, Final

from pydantic import Field, JsonValue, StringConstraints

from palestra.contract.documents import Document
from palestra.contract.filters import MAX_FILTER
from palestra.contract.queries import FieldPath
from palestra.contract.statistics import (
    MAX_SEED,
    EnvironmentStatistics,
    LeftOutRun,
    ScoreRule,
)
from palestra.contract.telemetry import RunId
from palestra.contract.views import View

MAX_MEMBERS: Final = 30
"""Largest number of runs or groups that one comparison is of."""
MAX_COMPARED_RUNS: Final = 500
"""Largest number of runs of all members together."""


class ComparisonQuery(Document):
    """A query that compares runs, or groups of runs, of `runs`, `experiments` and `filter`."""

    runs: Annotated[tuple[RunId, ...], Field(max_length=MAX_COMPARED_RUNS)] = ()
    experiments: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=128)], ...], Field(max_length=100)
    ] = ()
    """Experiments whose runs are added to `runs`."""
    filter: Annotated[str, StringConstraints(max_length=MAX_FILTER)] = ""
    """Filter of the list of runs (`GET /runs`), whose runs are added to `runs`; empty adds none."""
    group_by: Annotated[tuple[FieldPath, ...], Field(max_length=5)] = ()
    """Fields of the definition: runs with equal values are one group. Empty compares single
    runs.
    """
    score: ScoreRule = ScoreRule(missing="leave_out")
    permutations: Annotated[int, Field(ge=100, le=10_000)] = 1_000
    """Permutations of the scores behind each p-value."""
    rng_seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    """Seed of the permutations and of the resamples behind intervals."""


class ComparedMember(View):
    """A run or group that is compared."""

    name: str
    by: dict[str, JsonValue]
    """Fields of `group_by` and their values; empty for a single run."""
    run_ids: list[str]
    environments: list[EnvironmentStatistics]
    """Raw scores per environment; empty if no run has a score."""


class ComparedField(View):
    """A member of the definition, or a fact about an attempt, and its value in each member."""

    path: str
    """Nested names joined by dots, as in filters: `agent.gamma`, `env.kwargs.size`."""
    differs: bool
    values: list[list[JsonValue]]
    """Per member its distinct values, in the order of its runs; empty where none has the field."""


class ComparedRun(View):
    """One run of a comparison."""

    run_id: str
    project: str
    experiment_id: str
    experiment: str
    """Name of the experiment."""
    seed: int
    member: int
    """Position in `members`."""
    environment: str
    score: float | None
    """Raw score; `null` for a run that is in `left_out`."""
    values: list[JsonValue]
    """Values of `parameters`; `null` where the definition lacks one."""


class ParameterImportance(View):
    """How much the scores of one environment vary with one member of the definition."""

    path: str
    levels: int
    """Number of distinct values."""
    correlation: float | None
    """Spearman's rank correlation with the score; `null` for values that have no order."""
    explained: float | None
    """Share of the variance of scores that a split by the values explains, less what a split by
    chance would (epsilon squared); from 0 to 1. `null` if no two runs share a part of the split.
    """
    p_value: float | None
    """Share of permutations of the scores that a split by the values explains as well."""
    same_split: list[str]
    """Other parameters that split the runs in the same way, so they cannot be told apart."""


class EnvironmentImportance(View):
    """Importance of parameters in one environment, the most important first."""

    environment: str
    runs: int
    """Runs with a score."""
    parameters: list[ParameterImportance]


class ComparisonMethod(View):
    """What is needed to compute the answer again."""

    score: str
    """How a run's score was computed, in words for a caption."""
    importance: str
    """How importance was computed, in words for a caption."""
    permutations: int
    rng_seed: int
    generator: str


class ComparisonResult(View):
    """Answer to a query that compares runs."""

    members: list[ComparedMember]
    definition: list[ComparedField]
    """All members of the definitions, nested ones flattened, in their order."""
    origin: list[ComparedField]
    """Versions, devices and code of the attempts, as far as they were recorded."""
    runs: list[ComparedRun]
    parameters: list[str]
    """Members of the definitions that differ between runs."""
    importance: list[EnvironmentImportance]
    """Per environment with enough scores."""
    warnings: list[str]
    """Sentences on why differences of scores may not come from the definitions."""
    notes: list[str]
    """Sentences on what the answer does not say."""
    left_out: list[LeftOutRun]
    method: ComparisonMethod
    cursor: int
    """Last event that the answer contains."""
