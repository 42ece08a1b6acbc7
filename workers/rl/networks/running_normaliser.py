"""Running statistics by which observations and rewards are scaled to unit variance.

An agent updates the statistics while it collects, but not during evaluations. They are part of the
agent's state in snapshots. An exported policy holds two tensors computed from them: mean and scale.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.core.types import Array, StateTree

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_NOTHING: Final[Doubles] = np.zeros(())


class RunningMoments:
    """Mean and variance of all samples so far, in double precision.

    The parallel update is that of Chan, Golub & LeVeque (1983).

    Args:
        shape: Shape of one sample; each entry has separate statistics.
    """

    __slots__ = ("_squares", "count", "mean")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.mean: Doubles = np.zeros(shape)
        self._squares: Doubles = np.zeros(shape)

    @property
    def variance(self) -> Doubles:
        """Mean squared distance from the mean; 1 for fewer than two samples."""
        return self._squares / self.count if self.count > 1 else np.ones_like(self._squares)

    def update(self, samples: Array) -> None:
        """Updates the statistics by samples [N, *shape]; N may be 0."""
        count = len(samples)
        if count == 0:
            return
        values = samples.astype(np.float64)
        if count == 1:
            self._merge(1, values[0], _NOTHING)
            return
        # `values.mean(0)` takes twice as long for few samples.
        mean = np.add.reduce(values, 0) / count
        values -= mean
        values *= values
        self._merge(count, mean, np.add.reduce(values, 0))

    def merge(self, other: "RunningMoments") -> None:
        """Updates the statistics by all samples of `other`."""
        if other.count:
            self._merge(other.count, other.mean, other._squares)  # noqa: SLF001 - of the same class

    def state_dict(self) -> StateTree:
        """Returns the number of samples, their mean and the sum of squared distances from it."""
        return {
            "count": self.count,
            "mean": np.array(self.mean),
            "squares": np.array(self._squares),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the statistics from `state`.

        Raises:
            ValueError: If the stored statistics are of samples of another shape.
        """
        mean, squares = np.array(state["mean"], np.float64), np.array(state["squares"], np.float64)
        if mean.shape != self.mean.shape:
            raise ValueError(
                f"the stored statistics do not fit: expected samples of shape {self.mean.shape}, "
                f"got {mean.shape}"
            )
        self.count, self.mean, self._squares = int(state["count"]), mean, squares

    def _merge(self, count: int, mean: Doubles, squares: Doubles) -> None:
        total = self.count + count
        distance = mean - self.mean
        self.mean = self.mean + distance * (count / total)
        self._squares = self._squares + squares + distance * distance * (self.count * count / total)
        self.count = total


class _FreezableStatistics:
    """Statistics that do not change while frozen."""

    def __init__(self) -> None:
        self._is_frozen = False

    @contextmanager
    def freeze(self) -> Iterator[None]:
        """Freezes the statistics for the body, and restores the previous setting afterwards."""
        before, self._is_frozen = self._is_frozen, True
        try:
            yield
        finally:
            self._is_frozen = before


class ObservationNormaliser(_FreezableStatistics):
    """Normalises observations: (x - mean) / sqrt(variance + epsilon), clipped.

    Each entry of an observation has its own mean and variance, over all environments of a run.

    Args:
        shape: Shape of one observation.
        clip: Results are clipped to [-clip, clip].
        epsilon: Added to the variance.
    """

    def __init__(
        self, shape: tuple[int, ...], *, clip: float = 10.0, epsilon: float = 1e-8
    ) -> None:
        super().__init__()
        self.clip, self._epsilon = clip, epsilon
        self.moments = RunningMoments(shape)
        self._affine: tuple[Floats, Floats] | None = None

    def update(self, batch: Array) -> None:
        """Updates the statistics by observations [N, *shape], unless frozen."""
        if not self._is_frozen and len(batch):
            self.moments.update(batch)
            self._affine = None

    def __call__(self, observation: Array) -> Floats:
        """Returns normalised observations float32 [..., *shape] of observations [..., *shape].

        Changes no statistics.
        """
        mean, scale = self._mean_and_scale()
        result: Floats = observation.astype(np.float32)
        result -= mean
        result *= scale
        np.maximum(result, -self.clip, out=result)
        return np.minimum(result, self.clip, out=result)

    def tensors(self, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Returns copies of mean and scale, float32 [*shape] each, for `normalise`."""
        mean, scale = self._mean_and_scale()
        return torch.tensor(mean, device=device), torch.tensor(scale, device=device)

    def state_dict(self) -> StateTree:
        """Returns the statistics."""
        return self.moments.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the statistics from `state`.

        Raises ValueError if the stored statistics are of observations of another shape.
        """
        self.moments.load_state_dict(state)
        self._affine = None

    def _mean_and_scale(self) -> tuple[Floats, Floats]:
        """Returns mean and scale, float32 [*shape] each; cached until the next update."""
        if self._affine is None:
            scale = 1 / np.sqrt(self.moments.variance + self._epsilon)
            self._affine = self.moments.mean.astype(np.float32), scale.astype(np.float32)
        return self._affine


def normalise(observation: Tensor, mean: Tensor, scale: Tensor, clip: float = 10.0) -> Tensor:
    """Normalises observations [N, *shape] as `ObservationNormaliser` does, as a pure function.

    Args:
        observation: Any dtype.
        mean: float32 [*shape].
        scale: float32 [*shape].
        clip: Results are clipped to [-clip, clip].
    """
    return ((observation.float() - mean) * scale).clamp(-clip, clip)


class RewardNormaliser(_FreezableStatistics):
    """Scales rewards: r / sqrt(variance of the discounted return + epsilon), clipped.

    No mean is subtracted, so rewards keep their sign.

    The return of each environment is the running sum of past rewards, R <- gamma R + r, and is
    reset to 0 after an episode, as in Gymnasium's `NormalizeReward` and Stable-Baselines3's
    `VecNormalize`.

    Args:
        num_envs: Number of environments, B.
        gamma: Discount factor of the agent.
        clip: Results are clipped to [-clip, clip].
        epsilon: Added to the variance.
    """

    def __init__(
        self, num_envs: int, gamma: float, *, clip: float = 10.0, epsilon: float = 1e-8
    ) -> None:
        super().__init__()
        self._gamma, self.clip, self._epsilon = gamma, clip, epsilon
        self._returns: Doubles = np.zeros(num_envs)
        self.moments = RunningMoments(())

    @property
    def scale(self) -> float:
        """Factor by which rewards are multiplied before they are clipped."""
        return 1 / math.sqrt(float(self.moments.variance) + self._epsilon)

    def update(self, reward: Array, ended: Array, active: Array | None = None) -> None:
        """Updates the statistics by T vector steps, unless frozen.

        Several calls with the same steps give the same statistics, except for rounding.

        Args:
            reward: [T, B].
            ended: bool [T, B]: terminated or truncated with this step.
            active: bool [T, B]: false for inactive slots, whose entries are ignored; `None` if all
                slots are active.
        """
        if self._is_frozen:
            return
        seen, returns = np.empty(reward.shape), self._returns
        for t in range(len(reward)):
            grown = self._gamma * returns + reward[t]
            seen[t] = grown
            begun = np.where(ended[t], 0.0, grown)
            returns = begun if active is None else np.where(active[t], begun, returns)
        self._returns = returns
        self.moments.update(seen.reshape(-1) if active is None else seen[active])

    def __call__(self, reward: Array) -> Floats:
        """Returns normalised rewards float32 [...] of rewards [...]. Changes no statistics."""
        scaled = (reward * self.scale).astype(np.float32)
        np.maximum(scaled, -self.clip, out=scaled)
        return np.minimum(scaled, self.clip, out=scaled)

    def state_dict(self) -> StateTree:
        """Returns the statistics and the running returns."""
        return {**self.moments.state_dict(), "returns": self._returns.copy()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the statistics and the running returns from `state`.

        Raises:
            ValueError: If `state` is of another number of environments.
        """
        returns = np.array(state["returns"], np.float64)
        if returns.shape != self._returns.shape:
            raise ValueError(
                f"the stored returns do not fit: expected {len(self._returns)} environments, got "
                f"{returns.shape}"
            )
        self.moments.load_state_dict(state)
        self._returns = returns
