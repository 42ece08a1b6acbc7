import gymnasium as gym
import numpy as np

REWARD = 1.0


class Walk(gym.Env):
    """A corridor; the agent must walk to its right end."""

    def __init__(self, length=5):
        self.length = length
        self.observation_space = gym.spaces.Box(0, 1, (length,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def _observation(self):
        return np.eye(self.length, dtype=np.float32)[self.place]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(self.length - 1))
        return self._observation(), {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        at_end = self.place == self.length - 1
        return self._observation(), REWARD * at_end, at_end, False, {}


class RequiredArgumentWalk(Walk):
    """An environment that requires an argument."""

    def __init__(self, length):
        super().__init__(length)


class TextWalk(Walk):
    """An environment with text observations, which no agent supports."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Text(8)
