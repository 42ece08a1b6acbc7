"""What an agent learns from, where that is not what the game says: clipped rewards, and lost lives
as ends.

Owns the difference and nothing else: `advance` returns the game's own rewards and ends, from which
returns, episodes and evaluations are made. So the curve shows raw returns of whole games, whatever
the agent is told (Mnih et al. 2015, Methods: Training details).
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from palestra.contract.envs import AtariPreprocessing
from workers.core.types import Array, StateTree
from workers.rl.envs.resumable_episode import Restored
from workers.rl.envs.vector import EpisodeVector, StepArrays


@runtime_checkable
class Heard(Protocol):
    """A vector with a second opinion for the learner."""

    @property
    def heard(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Reward [B] and terminated [B] of the last step, for the learner."""
        ...


class HeardVector:
    """A training environment with a second opinion for the learner.

    Args:
        env: Of Atari games; owned.
        spec: Says what the learner is told.
    """

    def __init__(self, env: EpisodeVector, spec: AtariPreprocessing) -> None:
        self._env = env
        self._clip = spec.clip_rewards
        self._by_life = spec.terminal_on_life_loss
        self.num_envs = env.num_envs
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space
        self.heard: tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] = (
            np.zeros(env.num_envs),
            np.zeros(env.num_envs, np.bool_),
        )
        """Reward [B] and terminated [B] of the last step, for the learner."""

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` is true."""
        return self._env.begin(mask, seeds)

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots and says what the learner hears."""
        before = self._lives() if self._by_life else None
        stepped = self._env.advance(actions)
        _, reward, terminated, _ = stepped
        ended = terminated if before is None else terminated | (self._lives() < before)
        self.heard = (np.clip(reward, -1.0, 1.0) if self._clip else reward), ended
        return stepped

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return self._env.successes()

    def save_episodes(self) -> list[StateTree]:
        """Returns the running episode of each slot."""
        return self._env.save_episodes()

    def restore_episodes(self, episodes: list[StateTree]) -> list[Restored]:
        """Finds back into episodes."""
        return self._env.restore_episodes(episodes)

    def close(self) -> None:
        """Closes all copies."""
        self._env.close()

    def _lives(self) -> npt.NDArray[np.int64]:
        games: Any = self._env
        lives: npt.NDArray[np.int64] = games.lives()
        return lives
