"""One explorer for a pack. Shapes: n members, B environments per member."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from workers.core.types import Array
from workers.rl.exploration.explorer import DrawingExplorer, Explorer, GreedyExplorer
from workers.rl.exploration.random_blocks import JoinedRandomBlocks


class JoinedExplorers:
    """Explores for all members, with the random numbers of each member's explorer.

    Args:
        each: One explorer per member, of the same kind and at the same step. Their `state_dict` is
            up to date only after `write_back`.
    """

    def __init__(self, each: Sequence[Explorer]) -> None:
        first = each[0]
        self._each = list(each)
        self._whole: Explorer | None = first if isinstance(first, GreedyExplorer) else None
        self._draws: JoinedRandomBlocks | None = None
        if isinstance(first, DrawingExplorer):
            self._draws = JoinedRandomBlocks(
                [one.draws for one in each if isinstance(one, DrawingExplorer)]
            )
            self._whole = first.copy_with_draws(self._draws)

    def explore(self, greedy: Array, env_steps: int) -> Array:
        """Returns actions [n * B, ...]; see `Explorer.explore`."""
        if self._whole is not None:
            return self._whole.explore(greedy, env_steps)
        parts = np.split(greedy, len(self._each))
        return np.concatenate(
            [one.explore(part, env_steps) for one, part in zip(self._each, parts, strict=True)]
        )

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Called after each step with the mask bool [n * B] of ended episodes."""
        if self._whole is None:
            for one, part in zip(self._each, np.split(ended, len(self._each)), strict=True):
                one.reset(part)

    def write_back(self) -> None:
        """Updates the members' explorers, before their state is read."""
        if self._draws is not None:
            self._draws.write_back()
