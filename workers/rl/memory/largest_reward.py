"""The largest |reward| that a replay memory was given."""

from typing import Final

import numpy as np

from workers.core.types import Array

_FEW: Final = 64


def find_largest_magnitude(rewards: Array) -> float:
    """Returns the largest |reward|; 0 of none. Rewards that are not numbers are left out.

    Few rewards, as between two windows of metrics, take less time as a list than in numpy.
    """
    if rewards.size <= _FEW:
        # Comparing with NaN is false, so it never takes the place of the largest one before it.
        return float(max((0.0, *map(abs, rewards.ravel().tolist()))))
    return max(0.0, float(np.fmax.reduce(np.abs(rewards), axis=None)))


class LargestReward:
    """Running maximum of |reward| over the rows of a memory.

    Each call reads only the rows written since the last one, so rows that were overwritten between
    two calls are not seen. A resumed memory begins with the rows that it still holds.

    Args:
        rewards: Rewards of the memory or of one lane of it, a view [steps, B].
    """

    def __init__(self, rewards: Array) -> None:
        self._rewards = rewards
        self._largest = 0.0
        self._seen = 0

    def of_environments(self, part: slice) -> "LargestReward":
        """Returns the maximum over the environments `part` of the same memory, to be measured."""
        return LargestReward(self._rewards[:, part])

    def measure(self, written: int) -> float:
        """Returns the maximum after `written` vector steps; 0 before the first."""
        length = len(self._rewards)
        count = min(written - self._seen, length)
        if count > 0:
            begin, end = (written - count) % length, (written - 1) % length + 1
            parts = [slice(begin, end)] if begin < end else [slice(begin, None), slice(0, end)]
            found = [find_largest_magnitude(self._rewards[part]) for part in parts]
            self._largest = max(self._largest, *found)
        self._seen = written
        return self._largest
