"""Environments for trainings with faults: scaled rewards, and an end that never comes."""

from typing import Any

import gymnasium

from benchmarks._health.names import ENDLESS, SCALED


class ScaledReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Multiplies rewards by a factor.

    Args:
        env: The environment.
        factor: The factor.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], factor: float) -> None:
        super().__init__(env)
        self._factor = factor

    def step(self, action: Any) -> Any:
        """Returns the step with the scaled reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, self._factor * float(reward), terminated, truncated, info


def make_scaled(reward: float = 1.0) -> gymnasium.Env[Any, Any]:
    """Returns CartPole with `reward` per step."""
    return ScaledReward(gymnasium.make("CartPole-v1"), reward)


def make_endless() -> gymnasium.Env[Any, Any]:
    """Returns Pendulum without a time limit."""
    return gymnasium.make("Pendulum-v1", max_episode_steps=-1).unwrapped


def register() -> None:
    """Registers the environments with Gymnasium in this process."""
    for name, maker in ((SCALED, make_scaled), (ENDLESS, make_endless)):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=maker)
