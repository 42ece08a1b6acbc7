"""Epsilon-greedy exploration."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.exploration.explorer import DrawingExplorer
from workers.rl.exploration.random_blocks import RandomBlocks
from workers.rl.exploration.schedules import LinearSchedule, RateSchedule

Actions = npt.NDArray[np.int64]


class EpsilonGreedy(DrawingExplorer):
    """Replaces each action by a uniformly random action with a scheduled probability.

    Args:
        epsilon: Probability of a random action as a function of env_steps.
        actions: Number of actions.
        generator: Random generator, used by this explorer only.
    """

    def __init__(
        self, epsilon: RateSchedule, *, actions: int, generator: np.random.Generator
    ) -> None:
        super().__init__(RandomBlocks(generator, self._draw))
        self._schedule, self._actions = epsilon, actions
        self._lowest: list[float] = []

    def epsilon(self, env_steps: int) -> float:
        """Returns the probability of a random action at this many env_steps."""
        return self._schedule(env_steps)

    def explore(self, greedy: Actions, env_steps: int) -> Actions:
        """Returns actions int64 [B]; `greedy` itself where none is replaced.

        Args:
            greedy: Actions int64 [B] of the policy; not changed.
            env_steps: Training env_steps before these actions.
        """
        draws = self.draws
        if draws.advance(greedy.shape):
            self._cache_lowest()
        at, epsilon = draws.step, self._schedule(env_steps)
        if self._lowest[at] >= epsilon:
            return greedy
        chance, random = draws.block
        return np.where(chance[at] < epsilon, random[at], greedy)

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns the probability of a random action as `explore/epsilon`."""
        return {"explore/epsilon": self._schedule(env_steps)}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the random numbers from `state`."""
        super().load_state_dict(state)
        self._cache_lowest()

    def _cache_lowest(self) -> None:
        """Caches the smallest random number of each step.

        No action is replaced in a step whose smallest number is not below epsilon, which is the
        usual case late in training.
        """
        self._lowest = self.draws.block[0].min(1).tolist() if self.draws.block else []

    def _draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Sequence[Array]:
        return generator.random(shape), generator.integers(self._actions, size=shape)


class LinearEpsilonGreedy(EpsilonGreedy):
    """Epsilon-greedy with a probability that falls linearly with env_steps, then stays constant.

    Source: Mnih et al. 2015, Methods.

    Args:
        start: Probability at env_step 0.
        end: Probability from `decay_steps` on.
        decay_steps: env_steps over which it falls.
        actions: Number of actions.
        generator: Random generator, used by this explorer only.
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
        super().__init__(
            LinearSchedule(start, end, decay_steps), actions=actions, generator=generator
        )
