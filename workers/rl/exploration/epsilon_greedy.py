"""Epsilon-greedy exploration."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.exploration.random_blocks import Blocks
from workers.rl.exploration.schedules import Constant, Exponential, Linear, RateSchedule

Actions = npt.NDArray[np.int64]


class EpsilonGreedy:
    """Replaces each action by a uniformly random one with a probability that a schedule gives.

    Args:
        epsilon: The probability by env_steps.
        actions: Number of actions.
        generator: Source of randomness; the explorer's own.
    """

    needs_values: ClassVar[bool] = False

    def __init__(
        self, epsilon: RateSchedule, *, actions: int, generator: np.random.Generator
    ) -> None:
        self._schedule, self._actions = epsilon, actions
        self.draws: Blocks = Blocks(generator, self._draw)
        self._lowest: list[float] = []

    def epsilon(self, env_steps: int) -> float:
        """Returns the probability of a random action at this many env_steps."""
        return self._schedule(env_steps)

    def explore(self, greedy: Actions, env_steps: int) -> Actions:
        """Returns actions int64 [B]; `greedy` itself where none is replaced.

        Args:
            greedy: Actions int64 [B] to replace some of; left as they are.
            env_steps: Counter before these actions.
        """
        draws = self.draws
        if draws.advance(greedy.shape):
            self._note()
        at, epsilon = draws.at, self._schedule(env_steps)
        if self._lowest[at] >= epsilon:
            return greedy
        chance, random = draws.block
        return np.where(chance[at] < epsilon, random[at], greedy)

    def drawing_from(self, draws: Blocks) -> Self:
        """Returns a like explorer with another source of random numbers, for as many environments
        as it draws for.
        """
        like = copy(self)
        like.draws = draws
        return like

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Does nothing: each step is on its own."""

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns the probability of a random action."""
        return {"explore/epsilon": self._schedule(env_steps)}

    def state_dict(self) -> StateTree:
        """Returns the state of the draws; the probability is a function of env_steps."""
        return self.draws.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the draws to a captured state."""
        self.draws.load_state_dict(state)
        self._note()

    def _note(self) -> None:
        """Least chance of each step: where it is no less than epsilon, which is most often so late
        in a training, no action is replaced.
        """
        self._lowest = self.draws.block[0].min(1).tolist() if self.draws.block else []

    def _draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Sequence[Array]:
        return generator.random(shape), generator.integers(self._actions, size=shape)


class LinearEpsilonGreedy(EpsilonGreedy):
    """Epsilon-greedy with a probability that falls linearly with env_steps, then stays (Mnih et al.
    2015, Methods).

    Args:
        start: Probability at env_step 0.
        end: Probability from `decay_steps` on.
        decay_steps: env_steps over which it falls.
        actions: Number of actions.
        generator: Source of randomness; the explorer's own.
    """

    def __init__(
        self,
        *,
        start: float,
        end: float,
        decay_steps: int,
        actions: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(Linear(start, end, decay_steps), actions=actions, generator=generator)


class ConstantEpsilonGreedy(EpsilonGreedy):
    """Epsilon-greedy with the same probability for ever; 1 makes it uniformly random."""

    def __init__(self, epsilon: float, *, actions: int, generator: np.random.Generator) -> None:
        super().__init__(Constant(epsilon), actions=actions, generator=generator)


class ExponentialEpsilonGreedy(EpsilonGreedy):
    """Epsilon-greedy with the probability start * decay^env_steps, but no less than `end`."""

    def __init__(
        self,
        *,
        start: float,
        end: float,
        decay: float,
        actions: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(Exponential(start, end, decay), actions=actions, generator=generator)
