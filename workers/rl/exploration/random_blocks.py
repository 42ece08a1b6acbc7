"""Random numbers for each step, drawn in blocks of many steps."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from workers.core.rng import generator_state, load_generator_state
from workers.core.types import Array, StateTree

Draw = Callable[[np.random.Generator, tuple[int, ...]], Sequence[Array]]
"""Draws arrays [*shape, ...] for a shape that begins with (steps, B)."""

STEPS: Final = 256
"""Most steps of a block."""
_ROWS: Final = 65_536
"""Most rows (steps times environments) of a block of more than one step."""


class RandomBlocks:
    """Draws random numbers for `STEPS` steps at a time.

    Blocks are faster because a call of a generator costs more than numbers for a few environments.

    The state holds the generator before the present block and the number of steps taken from the
    block; to restore it, the block is drawn again.

    Args:
        generator: Random generator; nothing else may use it from now on.
        draw: Draws the arrays of one block.
    """

    __slots__ = ("_begin", "_draw", "_generator", "_shape", "_steps", "block", "step")

    def __init__(self, generator: np.random.Generator, draw: Draw) -> None:
        self._generator, self._draw = generator, draw
        self._begin: StateTree | None = None
        self._shape: tuple[int, ...] = ()
        self.block: Sequence[Array] = ()
        """The arrays [steps, B, ...] of the present block."""
        self._steps = 0
        self.step = -1
        """Index in the block of the present step; -1 before the first `advance`."""

    def advance(self, shape: tuple[int, ...]) -> bool:
        """Moves to the next step, and returns whether a new block was drawn for it.

        Args:
            shape: Shape of the actions, [B, ...]. If it differs from that of the previous step, the
                rest of the block is discarded.
        """
        self.step += 1
        if self.step < self._steps and shape == self._shape:
            return False
        self._begin = generator_state(self._generator)
        self._fill(shape)
        self.step = 0
        return True

    def state_dict(self) -> StateTree:
        """Returns the generator before the block, the block's shape and the steps taken."""
        if self._begin is None:
            return {
                "generator": generator_state(self._generator),
                "shape": np.zeros(0, np.int64),
                "taken": 0,
            }
        return {
            "generator": self._begin,
            "shape": np.array(self._shape, np.int64),
            "taken": self.step + 1,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the generator and the present block from `state`."""
        load_generator_state(self._generator, state["generator"])
        self._begin, self._shape, self.block, self._steps, self.step = None, (), (), 0, -1
        if state["taken"]:
            self._begin = state["generator"]
            self._fill(tuple(state["shape"].tolist()))
            self.step = int(state["taken"]) - 1

    def _fill(self, shape: tuple[int, ...]) -> None:
        self._shape, self._steps = shape, max(1, min(STEPS, _ROWS // max(1, shape[0])))
        self.block = self._draw(self._generator, (self._steps, *shape))


class JoinedRandomBlocks(RandomBlocks):
    """Concatenates the blocks of n explorers at the same step, with B environments per explorer.

    Args:
        each: The blocks of each explorer. Their `step` is up to date only after `write_back`; their
            state is saved and restored separately.

    Raises:
        RuntimeError: If they are not at the same step.
    """

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[RandomBlocks]) -> None:
        # There is no generator, so the constructor of the base class is not called.
        if len({blocks.step for blocks in each}) > 1:
            raise RuntimeError(
                "the members of the pack drew different numbers of actions: they are out of step"
            )
        self._each = list(each)
        self.step = each[0].step
        self.block, self._steps = (), 0

    def advance(self, shape: tuple[int, ...]) -> bool:
        """Moves to the next step, and returns whether it is the first of a new block.

        Args:
            shape: Shape of the actions, [n * B, ...].
        """
        if self.step + 1 < self._steps:
            self.step += 1
            return False
        self.write_back()
        for blocks in self._each:
            blocks.advance((shape[0] // len(self._each), *shape[1:]))
        self.step = self._each[0].step
        self.block = [
            np.concatenate(parts, 1)
            for parts in zip(*(blocks.block for blocks in self._each), strict=True)
        ]
        self._steps = len(self.block[0])
        return True

    def write_back(self) -> None:
        """Sets the blocks of each explorer to the present step."""
        for blocks in self._each:
            blocks.step = self.step
