"""The largest |reward| that a replay memory was given."""

import numpy as np

from workers.core.types import Array


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
            found = max(float(np.abs(self._rewards[part]).max()) for part in parts)
            # A reward that is not a number compares as false and is left out.
            self._largest = max(self._largest, found)
        self._seen = written
        return self._largest
