"""Flipping bits towards a goal: a task for hindsight experience replay.

With many bits it is unsolvable by chance (Andrychowicz et al. 2017, section 3.1).
"""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from workers.core.types import Array
from workers.rl.envs.env_types import Info, ResetOptions

Bits = npt.NDArray[np.int8]


class BitFlip(gym.Env[dict[str, Bits], np.int64]):
    """The state is `bits` bits; the start and the goal are drawn uniformly.

    Action i flips bit i; the reward is -1 until the goal is reached, then 0.

    An episode terminates with success at the goal and is truncated after `bits` steps, which always
    suffice. The start is never the goal. Observations are a dict of `observation`,
    `achieved_goal` (the same) and `desired_goal`, int8 [bits] each.

    Args:
        bits: Number of bits, n in the paper.

    Raises:
        ValueError: If `bits` is less than 1.
    """

    def __init__(self, bits: int = 8) -> None:
        if bits < 1:
            raise ValueError(f"bits must be at least 1, not {bits}")
        binary = gym.spaces.MultiBinary(bits)
        self.observation_space: gym.Space[Any] = gym.spaces.Dict(
            {"observation": binary, "achieved_goal": binary, "desired_goal": binary}
        )
        self.action_space = gym.spaces.Discrete(bits)
        self._bits: Bits = np.zeros(bits, np.int8)
        self._goal: Bits = np.ones(bits, np.int8)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[dict[str, Bits], Info]:
        """Draws a start and a goal."""
        super().reset(seed=seed, options=options)
        size = len(self._bits)
        self._bits, self._goal = self.np_random.integers(0, 2, (2, size), np.int8)
        if np.array_equal(self._bits, self._goal):
            self._goal[self.np_random.integers(size)] ^= 1
        self._steps = 0
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[dict[str, Bits], float, bool, bool, Info]:
        """Flips bit `action`."""
        self._bits[action] ^= 1
        self._steps += 1
        reward = float(self.compute_reward(self._bits, self._goal))
        terminated = bool(self.compute_terminated(self._bits, self._goal))
        return (
            self._observation(),
            reward,
            terminated,
            self._steps >= len(self._bits),
            {"is_success": terminated},
        )

    @staticmethod
    def compute_reward(
        achieved: Array, desired: Array, info: object = None
    ) -> npt.NDArray[np.float64]:
        """Returns the reward [...]: 0 where `achieved` [..., bits] equals `desired`, else -1."""
        del info
        return np.where((np.asarray(achieved) == desired).all(axis=-1), 0.0, -1.0)

    @staticmethod
    def compute_terminated(
        achieved: Array, desired: Array, info: object = None
    ) -> npt.NDArray[np.bool_]:
        """Returns whether the goal is reached [...]; arguments like `compute_reward`."""
        del info
        return np.asarray((np.asarray(achieved) == desired).all(axis=-1))

    def _observation(self) -> dict[str, Bits]:
        return {
            "observation": self._bits.copy(),
            "achieved_goal": self._bits.copy(),
            "desired_goal": self._goal.copy(),
        }
