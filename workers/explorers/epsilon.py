"""Epsilon-greedy exploration."""

import numpy as np
import numpy.typing as npt

from workers.core.rng import generator_state, load_generator_state
from workers.core.types import StateTree

Actions = npt.NDArray[np.int64]


class LinearEpsilonGreedy:
    """Replaces each action by a uniformly random one with a probability that falls linearly with env_steps, then stays.

    Args:
        start: Probability at env_step 0.
        end: Probability from `decay_steps` on.
        decay_steps: env_steps over which it falls.
        actions: Number of actions.
        generator: Source of randomness; the explorer's own.
    """

    def __init__(self, *, start: float, end: float, decay_steps: int, actions: int, generator: np.random.Generator) -> None:
        self._start, self._end, self._decay_steps = start, end, decay_steps
        self._actions = actions
        self._generator = generator

    def epsilon(self, env_steps: int) -> float:
        """Returns the probability of a random action at this many env_steps."""
        if env_steps >= self._decay_steps:
            return self._end
        return self._start + (self._end - self._start) * (env_steps / self._decay_steps)

    def explore(self, greedy: Actions, env_steps: int) -> Actions:
        """Returns actions int64 [B].

        Args:
            greedy: Actions int64 [B] to replace some of; left as they are.
            env_steps: Counter before these actions.
        """
        count = len(greedy)
        # both are always drawn: what the stream gives next depends on the number of calls alone
        chance = self._generator.random(count)
        random = self._generator.integers(self._actions, size=count)
        return np.where(chance < self.epsilon(env_steps), random, greedy)

    def state_dict(self) -> StateTree:
        """Returns the state of the generator; the probability is a function of env_steps."""
        return {"generator": generator_state(self._generator)}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the generator to a captured state."""
        load_generator_state(self._generator, state["generator"])
