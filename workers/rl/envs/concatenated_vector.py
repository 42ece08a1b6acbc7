"""Steps the vector environments of several runs as one: n vectors of B environments each."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.envs.cart_pole import CartPoleVector
from workers.rl.envs.learner_rewards import LearnerRewards
from workers.rl.envs.resumable_episode import RestoredEpisode
from workers.rl.envs.vector import EpisodeVector, StepArrays


def concatenate_vectors(vectors: Sequence[EpisodeVector]) -> EpisodeVector:
    """Returns a vector environment of the n * B slots of `vectors`, in their order.

    The vectors must be of the same class with the same options. Each can still save and restore
    its own slots, but from now on only the returned vector environment may be stepped.
    """
    first = vectors[0]
    if isinstance(first, CartPoleVector):
        whole = CartPoleVector(
            sum(vector.num_envs for vector in vectors), first.limit, **first.options
        )
        whole.take(cast("Sequence[CartPoleVector]", vectors))
        return whole
    return (ReportingConcatenation if isinstance(first, LearnerRewards) else ConcatenatedVector)(
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
        """Begins episodes where `mask` [n * B] is true; returns the observations [n * B, ...]."""
        each = zip(self._vectors, self._parts, strict=True)
        return np.concatenate([vector.begin(mask[part], seeds[part]) for vector, part in each])

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots, one vector after the other, and concatenates the results."""
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
        """Returns the episode in progress of each slot."""
        return [episode for vector in self._vectors for episode in vector.save_episodes()]

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from `episodes`, one per slot."""
        each = zip(self._vectors, self._parts, strict=True)
        return [
            restored
            for vector, part in each
            for restored in vector.restore_episodes(episodes[part])
        ]

    def close(self) -> None:
        """Does nothing: the caller owns the vectors and closes them."""


class ReportingConcatenation(ConcatenatedVector):
    """A concatenation of vectors that report separate rewards to the learner.

    See `workers.rl.envs.learner_rewards`.
    """

    @property
    def reported_step(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Reported reward [n * B] and terminated [n * B] of the last step."""
        reported = [
            vector.reported_step for vector in self._vectors if isinstance(vector, LearnerRewards)
        ]
        return np.concatenate([reward for reward, _ in reported]), np.concatenate(
            [terminated for _, terminated in reported]
        )
