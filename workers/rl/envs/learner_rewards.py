"""Reports clipped rewards, and lost lives as terminations, to the learner of an Atari game.

`advance` still returns the game's own rewards and terminations, from which episode returns, lengths
and evaluations are computed. So curves show unclipped returns of whole games, whatever is reported
to the learner (Mnih et al. 2015, Methods: Training details).
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from palestra.contract.envs import AtariPreprocessing
from workers.core.types import Array
from workers.rl.envs.vector import EpisodeVector, StepArrays, VectorWrapper


@runtime_checkable
class LearnerRewards(Protocol):
    """A vector environment that reports separate rewards and terminations to the learner."""

    @property
    def reported_step(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Reported reward [B] and terminated [B] of the last step."""


class ReportingVector(VectorWrapper):
    """A training environment that reports clipped rewards and lost lives to the learner.

    Args:
        env: Vector environment of Atari games; owned.
        spec: Says whether rewards are clipped and whether lost lives are terminations.
    """

    def __init__(self, env: EpisodeVector, spec: AtariPreprocessing) -> None:
        super().__init__(env)
        self._clip = spec.clip_rewards
        self._by_life = spec.terminal_on_life_loss
        self.reported_step: tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] = (
            np.zeros(env.num_envs),
            np.zeros(env.num_envs, np.bool_),
        )
        """Reported reward [B] and terminated [B] of the last step."""

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots and sets `reported_step`; returns the game's rewards and terminations."""
        before = self._lives() if self._by_life else None
        stepped = self.env.advance(actions)
        _, reward, terminated, _ = stepped
        ended = terminated if before is None else terminated | (self._lives() < before)
        self.reported_step = (np.clip(reward, -1.0, 1.0) if self._clip else reward), ended
        return stepped

    def _lives(self) -> npt.NDArray[np.int64]:
        games: Any = self.env
        lives: npt.NDArray[np.int64] = games.lives()
        return lives
