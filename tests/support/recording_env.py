"""Environments that record the calls that they receive."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np


class EpisodeLengthsEnv(gym.Env[np.ndarray, Any]):
    """Episodes of given lengths, in turn.

    The observation is (step, episode); the reward is constant.

    Args:
        lengths: Lengths of the episodes, in turn; 0 stands for an episode that never ends.
        reward: Reward of each step.
        fail_at: Number of the step, over all episodes, that raises `error`.
        needs_reset_at: Steps of an episode at which its info requests a reset.
    """

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float64)
    action_space = gym.spaces.Discrete(3)

    def __init__(
        self,
        lengths: Sequence[int] = (3,),
        reward: float = 1.0,
        fail_at: int = 0,
        error: BaseException | None = None,
        needs_reset_at: int = 0,
    ) -> None:
        self.lengths = lengths
        self.reward = reward
        self.fail_at = fail_at
        self.error = error
        self.needs_reset_at = needs_reset_at
        self.resets: list[int | None] = []
        self.steps = 0
        self.at = 0
        self.closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets.append(seed)
        self.at = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == self.fail_at:
            raise self.error or ValueError("the robot fell over")
        self.at += 1
        info = {"needs_reset": True} if self.at == self.needs_reset_at else {}
        return self._observation(), self.reward, self.at == self.length, False, info

    def close(self) -> None:
        self.closed = True

    @property
    def length(self) -> int:
        return self.lengths[(len(self.resets) - 1) % len(self.lengths)]

    def _observation(self) -> np.ndarray:
        return np.array([self.at, len(self.resets)], np.float64)


class RepeatingEnv(EpisodeLengthsEnv):
    """An environment whose observations are the same in every episode."""

    def _observation(self) -> np.ndarray:
        return np.array([self.at, 0], np.float64)


class StatisticsEnv(EpisodeLengthsEnv):
    """An environment that reports statistics of its own."""

    cleared = 0

    def clear_statistics(self) -> None:
        self.cleared += 1

    def get_statistics(self) -> list[tuple[str, Any]]:
        return [("laps", float(len(self.resets)))]


class SeededEpisodesEnv(EpisodeLengthsEnv):
    """Episodes whose lengths and rewards are drawn from the seeded generator.

    The same seed therefore repeats an episode exactly.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.lengths = (int(self.np_random.integers(3, 12)),)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = super().step(action)
        return (
            observation,
            float(self.np_random.normal()) + 0.1 * float(action),
            terminated,
            truncated,
            info,
        )

    def _observation(self) -> np.ndarray:
        return np.array([self.at, self.np_random.random() if self.resets else 0.0], np.float64)


def make_envs(count: int, lengths: Sequence[int] = (3,), **options: Any) -> list[EpisodeLengthsEnv]:
    """Returns several `EpisodeLengthsEnv` environments."""
    return [EpisodeLengthsEnv(lengths, **options) for _ in range(count)]
