"""Names for environments whose observations and actions are of any type."""

from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

Env = gym.Env[Any, Any]
"""An environment with observations and actions of any type."""

VecEnv = VectorEnv[Any, Any, Any]
"""A vector environment with observations and actions of any type."""

Info = dict[str, Any]
"""Further values that an environment reports with a transition, by name."""

ResetOptions = dict[str, Any]
"""The options of `reset`, by name."""
