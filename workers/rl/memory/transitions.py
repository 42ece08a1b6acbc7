"""Types for the rows and the samples of a replay memory. T vector steps, B environments."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workers.core.types import Array
from workers.rl.memory.sampling_rules import Places, Weights

Field = tuple[tuple[int, ...], npt.DTypeLike]
"""Shape and dtype of one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySpec:
    """Sizes and fields of a replay memory.

    Raises:
        ValueError: If a number is out of its range.
    """

    capacity: int
    """Most transitions stored, at least 1; rounded up to a multiple of `num_envs`."""
    num_envs: int = 1
    """Number of environments, B, at least 1."""
    observation: Field
    action: Field
    n_step: int = 1
    """Most rewards that a sampled transition sums up, in [1, 100]."""
    gamma: float = 0.99
    """Discount factor per row, in [0, 1]."""

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.num_envs < 1:
            raise ValueError(
                f"capacity and num_envs must be at least 1, not {self.capacity} and {self.num_envs}"
            )
        if not 1 <= self.n_step <= 100:
            raise ValueError(f"n_step must lie between 1 and 100, not at {self.n_step}")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1], not at {self.gamma}")

    @property
    def steps(self) -> int:
        """Maximum number of stored rows per environment."""
        return -(-self.capacity // self.num_envs)


class Sample(NamedTuple):
    """U batches of N transitions.

    The arrays belong to the memory and may be overwritten by its next sample of the same shape. Not
    all of them are contiguous.
    """

    observation: Array
    """[U, N, ...]"""
    action: Array
    """[U, N, ...]: the stored actions."""
    reward: npt.NDArray[np.float32]
    """float32 [U, N]: the sum of up to n rewards, discounted."""
    next_observation: Array
    """[U, N, ...]: the observation after the last of these rewards."""
    discount: npt.NDArray[np.float32]
    """float32 [U, N]: factor of the value of `next_observation`: gamma^k after k rewards, 0 where
    the episode terminated with the last of them.
    """
    weight: Weights
    """float32 [U, N]: importance weights, at most 1."""
    places: Places
    """int64 [U, N]: indices of the rows, to pass to `update_errors`."""


class SampledSequences(NamedTuple):
    """U batches of N sequences of L consecutive rows of one environment; rewards are not summed."""

    observation: Array
    """[U, N, L, ...]"""
    action: Array
    """[U, N, L, ...]"""
    reward: npt.NDArray[np.float32]
    """float32 [U, N, L]"""
    next_observation: Array
    """[U, N, L, ...]"""
    discount: npt.NDArray[np.float32]
    """float32 [U, N, L]: gamma, 0 where the episode terminated with the row."""
    reset: npt.NDArray[np.bool_]
    """bool [U, N, L]: whether the row does not continue the row before it in time, so that a
    recurrent state must be reset before it.
    """
    valid: npt.NDArray[np.bool_]
    """bool [U, N, L]: false where the entry is padding, or of a slot that waited."""


class Rows(NamedTuple):
    """Rows to be written, [T, B, ...] per field."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    ended: Array
    """bool [T, B]: whether the environment's next row does not continue this row."""
    active: Array | None

    def part(self, begin: int, end: int | None = None) -> "Rows":
        """Returns views of the vector steps [begin, end)."""
        return Rows._make(None if column is None else column[begin:end] for column in self)
