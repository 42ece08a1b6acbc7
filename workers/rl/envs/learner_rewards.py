"""Rewards and ends that the learner is given in place of the game's own.

Rewards are clipped, and lost lives are ends.

Owns the difference and nothing else: `advance` returns the game's own rewards and ends, from which
returns, episodes and evaluations are made. So the curve shows raw returns of whole games, whatever
the learner reads (Mnih et al. 2015, Methods: Training details).
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from palestra.contract.envs import AtariPreprocessing
from workers.core.types import Array
from workers.rl.envs.vector import EpisodeVector, StepArrays, VectorWrapper


@runtime_checkable
class ReportsRewards(Protocol):
    """A vector that reports separate rewards and ends to the learner."""

    @property
    def reported(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Reward [B] and terminated [B] of the last step, for the learner."""


class ReportingVector(VectorWrapper):
    """A training environment that reports clipped rewards and lost lives to the learner.

    Args:
        env: Of Atari games; owned.
        spec: Which rewards and ends are reported.
    """

    def __init__(self, env: EpisodeVector, spec: AtariPreprocessing) -> None:
        super().__init__(env)
        self._clip = spec.clip_rewards
        self._by_life = spec.terminal_on_life_loss
        self.reported: tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] = (
            np.zeros(env.num_envs),
            np.zeros(env.num_envs, np.bool_),
        )
        """Reward [B] and terminated [B] of the last step, for the learner."""

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots, and sets the reported rewards and ends."""
        before = self._lives() if self._by_life else None
        stepped = self.env.advance(actions)
        _, reward, terminated, _ = stepped
        ended = terminated if before is None else terminated | (self._lives() < before)
        self.reported = (np.clip(reward, -1.0, 1.0) if self._clip else reward), ended
        return stepped

    def _lives(self) -> npt.NDArray[np.int64]:
        games: Any = self.env
        lives: npt.NDArray[np.int64] = games.lives()
        return lives
