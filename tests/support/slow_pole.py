"""A CartPole whose steps take long while a file exists.

With it a test decides how far a training comes, on any machine. It may show a progress bar.
"""

import sys
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
        bar_steps: Steps between two refreshes of a progress bar on stderr, as tqdm writes one;
            0 for no bar.
    """

    def __init__(self, brake: str | None = None, bar_steps: int = 0) -> None:
        super().__init__()
        self._bar_steps = bar_steps
        self._steps = 0
        self._brake = None if brake is None else Path(brake)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._brake is not None and self._brake.exists():
            time.sleep(STEP_SECONDS)
        self._steps += 1
        if self._bar_steps and self._steps % self._bar_steps == 0:
            sys.stderr.write(f"\r{self._steps:6d} steps |{self._steps // 10 % 10 * '█':10}| ")
            sys.stderr.flush()
        return super().step(action)  # type: ignore[no-any-return,no-untyped-call]


gym.register("SlowPole-v0", f"{__name__}:SlowPole", max_episode_steps=500)
