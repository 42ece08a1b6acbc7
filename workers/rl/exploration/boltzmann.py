"""Boltzmann exploration: the better an action looks, the more often it is taken (Sutton & Barto
2018, section 2.8).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from workers.core.errors import DefinitionError
from workers.core.types import Array, StateTree
from workers.rl.exploration.random_blocks import Blocks
from workers.rl.exploration.schedules import Constant, RateSchedule


class Boltzmann:
    """Draws actions with probabilities proportional to exp(value / temperature).

    Args:
        temperature: Above 0, by env_steps or the same for ever: near 0 the best action is taken, at
            infinity all alike.
        generator: Source of randomness; the explorer's own.
    """

    needs_values: ClassVar[bool] = True

    def __init__(
        self, temperature: RateSchedule | float = 1.0, *, generator: np.random.Generator
    ) -> None:
        self._schedule = (
            Constant(temperature) if isinstance(temperature, int | float) else temperature
        )
        if self._schedule(0) <= 0:
            raise DefinitionError(
                f"the temperature of Boltzmann exploration must be above 0, not {self._schedule(0)}"
            )
        self._draws = Blocks(generator, _draw)

    def explore(self, greedy: Array, env_steps: int) -> npt.NDArray[np.int64]:
        """Returns actions int64 [B] by the Gumbel-max trick: the greatest of value / T + Gumbel
        noise is a sample.

        Args:
            greedy: Values float [B, actions].
            env_steps: Counter before these actions.
        """
        self._draws.advance(greedy.shape)
        noise: Array = self._draws.block[0][self._draws.at]
        actions: npt.NDArray[np.int64] = (greedy + self._schedule(env_steps) * noise).argmax(1)
        return actions

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Does nothing: each step is on its own."""

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns the temperature."""
        return {"explore/temperature": self._schedule(env_steps)}

    def state_dict(self) -> StateTree:
        """Returns the state of the draws."""
        return self._draws.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the draws to a captured state."""
        self._draws.load_state_dict(state)


def _draw(generator: np.random.Generator, shape: tuple[int, ...]) -> Sequence[Array]:
    return (generator.gumbel(size=shape),)
