"""A CartPole whose steps take long while a file exists.

With it a test decides how far a training comes, on any machine.
"""

import time
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv

STEP_SECONDS: Final = 0.02


class SlowPole(CartPoleEnv):
    """A CartPole.

    Args:
        brake: File that slows the steps down while it exists.
    """

    def __init__(self, brake: str | None = None) -> None:
        super().__init__()
        self._brake = None if brake is None else Path(brake)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._brake is not None and self._brake.exists():
            time.sleep(STEP_SECONDS)
        return super().step(action)  # type: ignore[no-any-return,no-untyped-call]


gym.register("SlowPole-v0", f"{__name__}:SlowPole", max_episode_steps=500)
