"""Summaries of a series: last, best, mean of the last ten, count, and first crossings. Pure.

Statistics are over finite values: NaN and infinities are counted in `nonfinite` (and in `count`)
and are never the last or the best value, and they cross no threshold. A series without a finite
value has no last, best or mean. Points follow each other in the order of their records, evaluations
in the order (env_step, update); points that a later attempt superseded must be left out. The first
crossing of a threshold is the one with the lowest env_step, so a point that arrives late counts.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from app.metrics.columns import Floats, Ints

RECENT: Final = 10
"""Number of the last finite values whose mean is kept."""

Goal = Literal["maximize", "minimize"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value that a series reaches: from below (`at_least`) or from above (`at_most`)."""

    value: float
    direction: Literal["at_least", "at_most"]


@dataclass(frozen=True, slots=True, order=True)
class Crossing:
    """Where a series first reached a threshold.

    Attributes:
        env_step: The lowest one with a value that reaches it.
        wall: Time of that point in seconds since the Unix epoch; the earliest of several.
    """

    env_step: int
    wall: float


@dataclass(slots=True)
class SeriesSummary:
    """The summary of a series so far.

    Attributes:
        goal: Whether the best value is the highest or the lowest.
        count: Number of points, those with values that are not finite included.
        nonfinite: Number of points with values that are not finite.
        best: Best finite value; `None` without one.
        best_env_step: Where the best value was first reached.
        recent: The last ten finite values, in order.
    """

    goal: Goal = "maximize"
    count: int = 0
    nonfinite: int = 0
    best: float | None = None
    best_env_step: int | None = None
    recent: tuple[float, ...] = ()
    crossings: dict[int, Crossing] = field(default_factory=dict)
    """First crossings by the ID of the threshold."""

    @property
    def last(self) -> float | None:
        """The last finite value."""
        return self.recent[-1] if self.recent else None

    @property
    def mean10(self) -> float | None:
        """The mean of the last ten finite values, or of all if there are fewer."""
        if not self.recent:
            return None
        mean = math.fsum(value / len(self.recent) for value in self.recent)
        return min(max(mean, min(self.recent)), max(self.recent))

    @property
    def recent_text(self) -> str:
        """The recent values as JSON."""
        return json.dumps(self.recent)

    def add(
        self,
        env_steps: Ints,
        walls: Floats,
        values: Floats,
        thresholds: Mapping[int, Threshold] | None = None,
    ) -> None:
        """Adds points that follow those before, each column of shape (points,).

        Args:
            env_steps: Positions.
            walls: Times in seconds since the Unix epoch.
            values: Values, which may be NaN or infinite.
            thresholds: Thresholds of the series by ID.
        """
        self.count += len(values)
        finite = np.isfinite(values)
        if not finite.all():
            self.nonfinite += len(values) - int(np.count_nonzero(finite))
            env_steps, walls, values = env_steps[finite], walls[finite], values[finite]
        if not len(values):
            return
        self._find_best(env_steps, values)
        self.recent = (*self.recent, *values[-RECENT:].tolist())[-RECENT:]
        for threshold_id, threshold in (thresholds or {}).items():
            first = _find_crossing(threshold, env_steps, walls, values)
            known = self.crossings.get(threshold_id)
            if first is not None and (known is None or first < known):
                self.crossings[threshold_id] = first

    def _find_best(self, env_steps: Ints, values: Floats) -> None:
        place = int(np.argmax(values) if self.goal == "maximize" else np.argmin(values))
        found = float(values[place])
        if self.best is None or (
            found > self.best if self.goal == "maximize" else found < self.best
        ):
            self.best, self.best_env_step = found, int(env_steps[place])


def _find_crossing(
    threshold: Threshold, env_steps: Ints, walls: Floats, values: Floats
) -> Crossing | None:
    reached = (
        values >= threshold.value
        if threshold.direction == "at_least"
        else values <= threshold.value
    )
    if not reached.any():
        return None
    steps, times = env_steps[reached], walls[reached]
    first = steps.min()
    return Crossing(int(first), float(times[steps == first].min()))


def read_recent(text: str) -> tuple[float, ...]:
    """Returns the recent values that `recent_text` wrote."""
    values: Sequence[float] = json.loads(text)
    return tuple(values)
