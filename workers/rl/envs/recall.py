"""A task that needs memory: the agent must name a cue that it observed some steps before.

It is the T-maze of Bakker (2001) without the corridor.
"""

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from workers.rl.envs.env_types import Info, ResetOptions

Seen = npt.NDArray[np.float32]


class Recall(gym.Env[Seen, np.int64]):
    """Shows a cue first, then zeros, then a question; the action at the question must name the cue.

    The cue is drawn uniformly and no later observation depends on it, so without memory the best
    mean return is 1 / cues. Observations are float32 [cues + 1]: the cue is a one-hot vector, the
    question a 1 in the last entry. The episode terminates with the answer, after delay + 1 steps;
    the reward is 1 for the right answer, else 0.

    Args:
        cues: Number of different cues, and of actions; at least 2.
        delay: Steps from the cue to the question, at least 1.

    Raises:
        ValueError: If `cues` is less than 2 or `delay` less than 1.
    """

    def __init__(self, cues: int = 4, delay: int = 6) -> None:
        if cues < 2 or delay < 1:
            raise ValueError(
                f"cues must be at least 2 and delay at least 1, not {cues} and {delay}"
            )
        self.observation_space = gym.spaces.Box(0.0, 1.0, (cues + 1,), np.float32)
        self.action_space = gym.spaces.Discrete(cues)
        self._cues = cues
        self._delay = delay
        self._cue = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Seen, Info]:
        """Draws a cue and returns it as the observation."""
        super().reset(seed=seed, options=options)
        self._cue = int(self.np_random.integers(self._cues))
        self._steps = 0
        return self._make_observation(self._cue), {}

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, Info]:
        """Counts a step; at the question, compares the action with the cue."""
        self._steps += 1
        if self._steps <= self._delay:
            return (
                self._make_observation(self._cues if self._steps == self._delay else None),
                0.0,
                False,
                False,
                {},
            )
        is_right = int(action) == self._cue
        return self._make_observation(None), float(is_right), True, False, {"is_success": is_right}

    def _make_observation(self, place: int | None) -> Seen:
        seen = np.zeros(self._cues + 1, np.float32)
        if place is not None:
            seen[place] = 1.0
        return seen
