"""The vectors of several runs, stepped as one. n vectors of B environments."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.envs.cart_pole import CartPoleVector
from workers.rl.envs.learner_rewards import ReportsRewards
from workers.rl.envs.resumable_episode import Restored
from workers.rl.envs.vector import EpisodeVector, StepArrays


def joined(vectors: Sequence[EpisodeVector]) -> EpisodeVector:
    """Returns a vector of the slots [n * B] of vectors that are alike, in their order.

    Each vector keeps its slots and goes on saving and restoring them, but only the whole is stepped
    from now on.
    """
    first = vectors[0]
    if isinstance(first, CartPoleVector):
        whole = CartPoleVector(
            sum(vector.num_envs for vector in vectors), first.limit, **first.options
        )
        whole.take(cast("Sequence[CartPoleVector]", vectors))
        return whole
    return (ReportingConcatenation if isinstance(first, ReportsRewards) else ConcatenatedVector)(
        vectors
    )


class ConcatenatedVector:
    """Steps one vector after the other; an `EpisodeVector`.

    Args:
        vectors: Owned by the caller.
    """

    def __init__(self, vectors: Sequence[EpisodeVector]) -> None:
        first = vectors[0]
        self._vectors = list(vectors)
        self._parts = [
            slice(*ends)
            for ends in pairwise(accumulate((vector.num_envs for vector in vectors), initial=0))
        ]
        self.num_envs = sum(vector.num_envs for vector in vectors)
        self.single_observation_space, self.single_action_space = (
            first.single_observation_space,
            first.single_action_space,
        )

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` is true."""
        each = zip(self._vectors, self._parts, strict=True)
        return np.concatenate([vector.begin(mask[part], seeds[part]) for vector, part in each])

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots."""
        stepped = [
            vector.advance(actions[part])
            for vector, part in zip(self._vectors, self._parts, strict=True)
        ]
        observation, reward, terminated, truncated = (
            np.concatenate(column) for column in zip(*stepped, strict=True)
        )
        return observation, reward, terminated, truncated

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return [success for vector in self._vectors for success in vector.successes()]

    def save_episodes(self) -> list[StateTree]:
        """Returns the running episode of each slot."""
        return [episode for vector in self._vectors for episode in vector.save_episodes()]

    def restore_episodes(self, episodes: list[StateTree]) -> list[Restored]:
        """Finds back into episodes."""
        each = zip(self._vectors, self._parts, strict=True)
        return [
            restored
            for vector, part in each
            for restored in vector.restore_episodes(episodes[part])
        ]

    def close(self) -> None:
        """Does nothing: the vectors are the caller's."""


class ReportingConcatenation(ConcatenatedVector):
    """A concatenation of vectors that report separate rewards to the learner.

    See `workers.rl.envs.learner_rewards`.
    """

    @property
    def reported(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Reward [n * B] and terminated [n * B] of the last step, as the learner reads them."""
        reported = [
            vector.reported for vector in self._vectors if isinstance(vector, ReportsRewards)
        ]
        return np.concatenate([reward for reward, _ in reported]), np.concatenate(
            [terminated for _, terminated in reported]
        )
