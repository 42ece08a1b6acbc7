"""Random numbers for one step after the other, drawn many steps at a time."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from workers.core.rng import generator_state, load_generator_state
from workers.core.types import Array, StateTree

Draw = Callable[[np.random.Generator, tuple[int, ...]], Sequence[Array]]
"""Draws arrays [*shape, ...] for a shape that begins with (steps, B)."""

STEPS: Final = 256
_ROWS: Final = 65_536
"""Most rows, steps times environments, that are drawn in one piece."""


class Blocks:
    """Draws random numbers for `STEPS` steps at a time.

    A call to a generator costs more than the numbers for a few environments.

    A snapshot holds the generator as it was before the block, and how far into it one is: a resume
    draws the block again.

    Args:
        generator: Source of randomness; the caller's own from here on.
        draw: What a step needs.
    """

    __slots__ = ("_begin", "_draw", "_generator", "_shape", "_steps", "at", "block")

    def __init__(self, generator: np.random.Generator, draw: Draw) -> None:
        self._generator, self._draw = generator, draw
        self._begin: StateTree | None = None
        self._shape: tuple[int, ...] = ()
        self.block: Sequence[Array] = ()
        """The arrays [steps, B, ...] of the present block."""
        self._steps = 0
        self.at = -1
        """Step of the block that the last call to `advance` took."""

    def advance(self, shape: tuple[int, ...]) -> bool:
        """Moves to the next step, and returns whether a new block was drawn for it.

        Args:
            shape: Of the actions, beginning with B. Where it differs from the one before, the rest
                of the block is thrown away.
        """
        self.at += 1
        if self.at < self._steps and shape == self._shape:
            return False
        self._begin = generator_state(self._generator)
        self._fill(shape)
        self.at = 0
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
            "taken": self.at + 1,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Finds back into the block."""
        load_generator_state(self._generator, state["generator"])
        self._begin, self._shape, self.block, self._steps, self.at = None, (), (), 0, -1
        if state.get("taken", 0):
            self._begin = state["generator"]
            self._fill(tuple(state["shape"].tolist()))
            self.at = int(state["taken"]) - 1

    def _fill(self, shape: tuple[int, ...]) -> None:
        self._shape, self._steps = shape, max(1, min(STEPS, _ROWS // max(1, shape[0])))
        self.block = self._draw(self._generator, (self._steps, *shape))


class JoinedBlocks(Blocks):
    """The blocks of several explorers that are at the same step, as one.

    n explorers, B environments of each.

    Args:
        each: Their own `at` is right after `settle`; they save and load themselves.

    Raises:
        RuntimeError: If they are not at the same step.
    """

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[Blocks]) -> None:  # not the base's: nothing is drawn here
        if len({blocks.at for blocks in each}) > 1:
            raise RuntimeError(
                "the members of the pack drew different numbers of actions: they are out of step"
            )
        self._each = list(each)
        self.at = each[0].at
        self.block, self._steps = (), 0

    def advance(self, shape: tuple[int, ...]) -> bool:
        """Moves to the next step, and returns whether it is in another block than the step before.

        `shape` begins with n * B.
        """
        if self.at + 1 < self._steps:
            self.at += 1
            return False
        self.settle()
        for blocks in self._each:
            blocks.advance((shape[0] // len(self._each), *shape[1:]))
        self.at = self._each[0].at
        self.block = [
            np.concatenate(parts, 1)
            for parts in zip(*(blocks.block for blocks in self._each), strict=True)
        ]
        self._steps = len(self.block[0])
        return True

    def settle(self) -> None:
        """Brings the blocks of each to this step."""
        for blocks in self._each:
            blocks.at = self.at
