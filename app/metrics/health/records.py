"""What the rules are given: the series of a run on one grid, and its evaluations."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from app.metrics.columns import Floats, Ints


@dataclass(frozen=True, slots=True)
class HealthSeries:
    """A series over buckets of env_step that hold a point; arrays of shape (buckets,).

    Attributes:
        env_step: Centre of each bucket.
        mean: Mean of its finite values; NaN without one.
        min: Least of them.
        max: Largest of them.
        nonfinite: Number of values that are not finite.
    """

    env_step: Floats
    mean: Floats
    min: Floats
    max: Floats
    nonfinite: Ints

    def last(self, share: float) -> Floats:
        """Returns the finite means of the last `share` of the buckets, of at least one."""
        finite = self.mean[np.isfinite(self.mean)]
        return finite[-max(1, round(len(finite) * share)) :]


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """One run as the rules see it.

    Attributes:
        series: Recorded series by name; a name without points is left out.
        evaluation_steps: Shape (evaluations,): env_step of each evaluation, ascending.
        evaluation_means: Shape (evaluations,): mean return of each.
        env_steps: Transitions of the run so far.
        gamma: Discount of the agent; `None` where it has none.
        max_grad_norm: Norm to which gradients are clipped; `None` without clipping.
        max_episode_steps: Limit of an episode, where the definition states one.
        entropy_bonus: Whether values include an entropy bonus (SAC).
    """

    series: Mapping[str, HealthSeries] = field(default_factory=dict)
    evaluation_steps: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    evaluation_means: Floats = field(default_factory=lambda: np.zeros(0))
    env_steps: int = 0
    gamma: float | None = None
    max_grad_norm: float | None = None
    max_episode_steps: int | None = None
    entropy_bonus: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence on what is wrong, with the number, and what to do about it.

    Attributes:
        rule: Name of the rule.
        sentence: What is wrong.
        remedy: What to try.
        series: Series that shows it; empty if none does.
        env_step: Where it shows.
    """

    rule: str
    sentence: str
    remedy: str
    series: str
    env_step: int
