"""How long jobs of a kind run: a distribution fitted to jobs of the same kind that have ended.

The logarithm of a runtime is normally distributed. Mean and variance are uncertain, with the
posterior of the normal model with conjugate prior (Gelman et al., Bayesian Data Analysis, 3rd
edition, section 3.3); the prior counts as two observations with a relative spread of 25 %. Each
simulation draws mean and variance once and all runtimes with these, so an error of the mean is
common to all jobs that wait for each other.
"""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from palestra.contract.names import Schedule

_PRIOR_OBSERVATIONS: Final = 2
_PRIOR_DEVIATION: Final = 0.25
FEWEST_ENDED: Final = 2
"""Jobs that must have ended before runtimes are estimated from them."""

_MAX_OBSERVATIONS: Final = 100
"""Latest jobs of a kind that are compared."""
_ROUNDS: Final = 5
"""Iterations of the fit where jobs were stopped before they ended."""
_SHORTEST_SECONDS: Final = 0.01
_FAR_TAIL: Final = 1e-9
_MAX_LOGARITHM: Final = 700.0
_NORMAL: Final = statistics.NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """Seconds for which jobs of a kind held a slot, without work that was lost and done again."""

    succeeded: Sequence[float] = ()
    failed: Sequence[float] = ()
    """Of jobs that ended by an error of their own."""
    stopped: Sequence[float] = ()
    """Of jobs that somebody cancelled or paused: they would have run longer."""

    @property
    def ended(self) -> int:
        """Number of jobs that ended by themselves."""
        return len(self.succeeded) + len(self.failed)


class DrawnRuntimes(NamedTuple):
    """One possible distribution of the runtimes of a kind."""

    mean: float
    """Mean of the logarithm of the seconds."""
    deviation: float
    failed: Sequence[float]
    failing: float
    """Probability that a job fails, after one of the runtimes `failed`."""

    def draw(self, source: random.Random, elapsed: float = 0.0) -> float:
        """Returns the runtime in seconds of a job that has run for `elapsed` seconds already."""
        if self.failed and source.random() < self.failing:
            longer = [seconds for seconds in self.failed if seconds > elapsed]
            if longer:
                return source.choice(longer)
        if elapsed <= _SHORTEST_SECONDS:
            return _exp(self.mean + self.deviation * _NORMAL.inv_cdf(_open(source.random())))
        reached = (math.log(elapsed) - self.mean) / self.deviation
        left = 1 - _NORMAL.cdf(reached)
        if left > _FAR_TAIL:
            exceeded = _NORMAL.inv_cdf(_open(1 - left * source.random()))
            return max(elapsed, _exp(self.mean + self.deviation * exceeded))
        # Far beyond all that was observed the tail of a normal distribution is exponential.
        return elapsed * _exp(self.deviation * source.expovariate(1.0) / reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeModel:
    """Distributions of the runtime of a kind of jobs, which fit the observed runtimes."""

    mean: float
    """Mean of the logarithm of the seconds."""
    variance: float
    degrees: float
    """Degrees of freedom of the variance."""
    observations: int
    """Number of jobs from which the mean is known."""
    failed: Sequence[float]
    failing: float

    def draw_parameters(self, source: random.Random) -> DrawnRuntimes:
        """Draws one of the distributions that fit the observed runtimes."""
        chi_squared = source.gammavariate(self.degrees / 2, 2.0)
        deviation = math.sqrt(self.degrees * self.variance / max(chi_squared, 1e-6))
        return DrawnRuntimes(
            mean=source.gauss(self.mean, deviation / math.sqrt(self.observations)),
            deviation=deviation,
            failed=self.failed,
            failing=self.failing,
        )

    def scale(self, factor: float) -> "RuntimeModel":
        """Returns the model of jobs that take `factor` times as long."""
        return RuntimeModel(
            mean=self.mean + math.log(factor),
            variance=self.variance,
            degrees=self.degrees,
            observations=self.observations,
            failed=[seconds * factor for seconds in self.failed],
            failing=self.failing,
        )


def fit(runtimes: Runtimes) -> RuntimeModel | None:
    """Returns the model of the given runtimes; `None` if no job has ended by itself.

    Stopped jobs would have run longer: the expectation of the runtime that they would have
    reached replaces the observed runtime (expectation maximisation).
    """
    # Where no job succeeded, how long jobs run until they fail is all that is known.
    succeeded = runtimes.succeeded or runtimes.failed
    failed = runtimes.failed if runtimes.succeeded else ()
    logs = [math.log(max(seconds, _SHORTEST_SECONDS)) for seconds in succeeded]
    if not logs:
        return None
    bounds = [math.log(max(seconds, _SHORTEST_SECONDS)) for seconds in runtimes.stopped]
    degrees = _PRIOR_OBSERVATIONS + len(logs) - 1
    mean, variance = statistics.fmean(logs), 0.0
    for _ in range(_ROUNDS if bounds else 1):
        deviation = math.sqrt(variance)
        pairs = [_expect_beyond(bound, mean, deviation) for bound in bounds if variance]
        expected = [value for value, _ in pairs]
        mean = statistics.fmean([*logs, *expected])
        squares = sum((value - mean) ** 2 for value in (*logs, *expected))
        squares += sum(spread for _, spread in pairs)
        prior = _PRIOR_OBSERVATIONS * _PRIOR_DEVIATION**2
        variance = (prior + squares) / (degrees + len(pairs))
    return RuntimeModel(
        mean=mean,
        variance=variance,
        degrees=degrees,
        observations=len(logs),
        failed=failed,
        failing=len(failed) / (len(failed) + len(logs)),
    )


def _expect_beyond(bound: float, mean: float, deviation: float) -> tuple[float, float]:
    """Returns mean and variance of a normal variable that is larger than a bound."""
    standard = (bound - mean) / deviation
    left = 1 - _NORMAL.cdf(standard)
    hazard = _NORMAL.pdf(standard) / left if left > _FAR_TAIL else standard
    spread = max(0.0, 1 + standard * hazard - hazard**2)
    return mean + deviation * hazard, deviation**2 * spread


def _exp(logarithm: float) -> float:
    """Returns the exponential, infinity where it is too large for a float."""
    return math.exp(logarithm) if logarithm < _MAX_LOGARITHM else math.inf


def _open(probability: float) -> float:
    return min(max(probability, 1e-12), 1 - 1e-12)


class JobKind(NamedTuple):
    """The properties that jobs share whose runtimes are compared."""

    definition_hash: str
    agent: str
    environment: str
    schedule: Schedule
    runs: int
    """Number of runs that a job trains together."""
    unit: str
    """What the budget counts: env_steps, updates or episodes; empty without a budget."""
    budget: float
    """Budget in that unit; 1 without a budget."""

    @property
    def parts(self) -> tuple[str, str, str, int, str]:
        """The properties that jobs of other definitions share with this kind."""
        return self.agent, self.environment, self.schedule, self.runs, self.unit

    @property
    def same(self) -> tuple[str, str, int]:
        """The properties that jobs of the same definition share with this kind."""
        return self.definition_hash, self.schedule, self.runs


class EndedJob(NamedTuple):
    """A job that has ended, and for how long it held a slot."""

    kind: JobKind
    seconds: float
    end: str
    """Name of the member of `Runtimes` that it belongs to."""


class RuntimeModels:
    """The models of the runtimes of kinds of jobs.

    Jobs of the same definition, schedule and number of runs are similar. Where fewer than two of
    these have ended, those with the same agent and environment are, with their seconds scaled by
    the budget.

    Args:
        ended: Jobs that have ended, the latest first.
    """

    def __init__(self, ended: Sequence[EndedJob]) -> None:
        self._same: dict[Any, list[tuple[str, float]]] = {}
        self._parts: dict[Any, list[tuple[str, float]]] = {}
        for job in ended:
            of_same = self._same.setdefault(job.kind.same, [])
            of_parts = self._parts.setdefault(job.kind.parts, [])
            if len(of_same) < _MAX_OBSERVATIONS:
                of_same.append((job.end, job.seconds))
            if len(of_parts) < _MAX_OBSERVATIONS:
                of_parts.append((job.end, job.seconds / job.kind.budget))
        self._models: dict[JobKind, RuntimeModel | None] = {}

    def find(self, kind: JobKind) -> RuntimeModel | None:
        """Returns the model of a kind; `None` where fewer than two similar jobs have ended."""
        if kind not in self._models:
            same = _fit(self._same.get(kind.same, ()))
            parts = None if same else _fit(self._parts.get(kind.parts, ()))
            self._models[kind] = same or (parts.scale(kind.budget) if parts else None)
        return self._models[kind]


def _fit(ended: Sequence[tuple[str, float]]) -> RuntimeModel | None:
    found = Runtimes(
        **{
            name: [seconds for end, seconds in ended if end == name]
            for name in ("succeeded", "failed", "stopped")
        }
    )
    return fit(found) if found.ended >= FEWEST_ENDED else None
