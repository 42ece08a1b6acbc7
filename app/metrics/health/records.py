"""What the rules are given: the series of a run on one grid, and its evaluations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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

    @classmethod
    def from_buckets(
        cls, env_step: Floats, n: Ints, statistics: Sequence[Floats], nonfinite: Ints
    ) -> "HealthSeries | None":
        """Returns the buckets that hold a point; `None` if none does.

        Args:
            env_step: Centre of each bucket.
            n: Number of points of each.
            statistics: Mean, minimum and maximum of each.
            nonfinite: Number of values of each that are not finite.
        """
        filled = np.flatnonzero(n)
        if not len(filled):
            return None
        mean, low, high = (column[filled] for column in statistics)
        return cls(env_step[filled], mean, low, high, nonfinite[filled])

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
        max_episode_steps: Limit of an episode, of the definition or the registered environment;
            `None` where neither has one.
        num_envs: Number of environments that are stepped together.
        entropy_bonus: Whether values include an entropy bonus (SAC).
    """

    series: Mapping[str, HealthSeries] = field(default_factory=dict)
    evaluation_steps: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    evaluation_means: Floats = field(default_factory=lambda: np.zeros(0))
    env_steps: int = 0
    gamma: float | None = None
    max_grad_norm: float | None = None
    max_episode_steps: int | None = None
    num_envs: int = 1
    entropy_bonus: bool = False

    @classmethod
    def from_definition(
        cls,
        definition: Mapping[str, Any],
        series: Mapping[str, HealthSeries],
        evaluations: Sequence[tuple[int, float]],
        env_steps: int,
        registered_limit: int | None = None,
    ) -> "TrainingRecord":
        """Returns the record of a run of a definition, a document of the present version.

        Args:
            definition: The definition.
            series: Recorded series by name.
            evaluations: env_step and mean return of each evaluation, in any order.
            env_steps: Transitions of the run so far.
            registered_limit: Episode limit of the environment where the definition states none.
        """
        agent, env = definition.get("agent") or {}, definition.get("env") or {}
        ordered = sorted(evaluations)
        return cls(
            series=series,
            evaluation_steps=np.array([step for step, _ in ordered], np.int64),
            evaluation_means=np.array([mean for _, mean in ordered], np.float64),
            env_steps=env_steps,
            gamma=agent.get("gamma"),
            max_grad_norm=agent.get("max_grad_norm"),
            max_episode_steps=env.get("max_episode_steps") or registered_limit,
            num_envs=agent.get("processes") or env.get("num_envs") or 1,
            entropy_bonus=agent.get("name") == "sac",
        )


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
