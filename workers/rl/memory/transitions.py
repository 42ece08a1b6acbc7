"""What goes into a replay memory and what comes out of it. T vector steps, B environments."""

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
    """What a replay memory keeps.

    Raises:
        ValueError: If a number is out of its bounds.
    """

    capacity: int
    """Transitions kept, at least 1; rounded up to a multiple of `num_envs`."""
    num_envs: int = 1
    """B, at least 1."""
    observation: Field
    action: Field
    n_step: int = 1
    """Most rewards that a sampled transition sums up, in [1, 100]."""
    gamma: float = 0.99
    """Discount per row, in [0, 1]."""

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
        """Rows kept of each environment."""
        return -(-self.capacity // self.num_envs)


class Sample(NamedTuple):
    """Batches of transitions; U batches of N. Not all arrays are contiguous.

    They belong to the memory: its next sample of the same shape may fill the same arrays.
    """

    observation: Array
    """[U, N, ...]"""
    action: Array
    """[U, N, ...], as it was stored."""
    reward: npt.NDArray[np.float32]
    """float32 [U, N]: the sum of up to n rewards, discounted."""
    next_observation: Array
    """[U, N, ...]: after the last of them."""
    discount: npt.NDArray[np.float32]
    """float32 [U, N]: of the value of `next_observation`: gamma^k after k rows, 0 where the last of
    them terminated.
    """
    weight: Weights
    """float32 [U, N]: importance weights, at most 1."""
    places: Places
    """int64 [U, N], for `feedback`."""


class SampledSequences(NamedTuple):
    """Batches of consecutive rows of one environment each.

    U batches of N sequences of L rows. n-step sums are not made.
    """

    observation: Array
    """[U, N, L, ...]"""
    action: Array
    """[U, N, L, ...]"""
    reward: npt.NDArray[np.float32]
    """float32 [U, N, L]"""
    next_observation: Array
    """[U, N, L, ...]"""
    discount: npt.NDArray[np.float32]
    """float32 [U, N, L]: gamma, 0 where the row terminated."""
    reset: npt.NDArray[np.bool_]
    """bool [U, N, L]: the row begins an episode, so a recurrent state begins anew before it."""
    valid: npt.NDArray[np.bool_]
    """bool [U, N, L]: false where the entry is padding and means nothing."""


class Rows(NamedTuple):
    """Rows to be written, each [T, B, ...]."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    ended: Array
    """The next row of the environment does not continue this one."""
    active: Array | None

    def part(self, begin: int, end: int | None = None) -> "Rows":
        """Returns views of the vector steps [begin, end)."""
        return Rows._make(None if column is None else column[begin:end] for column in self)
