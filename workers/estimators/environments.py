"""Converts an agent's Gymnasium environment to a vector environment that the engine steps."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from workers.rl.envs.env_recipe import registered_spec
from workers.rl.envs.env_types import Env
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.space_arrays import check_is_array
from workers.rl.envs.vector import SerialVector


def check_env(env: object) -> None:
    """Checks that `env` is a Gymnasium environment with array observations; raises TypeError."""
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a gymnasium.Env, not {type(env).__name__}")
    check_is_array(env.observation_space, "env")


def vector_of(
    env: Env, max_episode_steps: int | None, seed: Callable[[], int] | None = None
) -> SerialVector:
    """Returns a vector environment with one environment, whose episode in progress can be saved.

    `TimeLimit` wrappers are removed and replaced by a limit of the vector environment, because the
    step count of a wrapper cannot be restored.

    Args:
        env: The environment.
        max_episode_steps: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
        seed: Returns the seed of each episode, which replaces the seed that the vector environment
            passes to `reset`; `None` does not replace it.
    """
    limits = [] if max_episode_steps is None else [max_episode_steps]
    while isinstance(env, TimeLimit):
        # Gymnasium has no public attribute for the limit.
        limits.append(env._max_episode_steps)  # noqa: SLF001
        env = env.env
    inner = env if seed is None else _SeededEnv(env, seed)
    return SerialVector([lambda: EpisodeEnv(inner, 0, min(limits, default=None))])


def copy_of(env: Env) -> Env:
    """Returns a copy of the environment, so that an evaluation does not change the original.

    Raises:
        TypeError: If the environment can neither be copied nor made again from its spec.
    """
    try:
        return deepcopy(env)
    except Exception as error:
        spec = registered_spec(env)
        if spec is not None:
            return gym.make(spec)
        message = (
            f"env cannot be copied for evaluation ({type(error).__name__}: {error}): "
            "pass a function that makes it"
        )
        raise TypeError(message) from error


class _SeededEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Resets the environment with the seeds of a function, in place of the caller's seed."""

    def __init__(self, env: Env, seed: Callable[[], int]) -> None:
        super().__init__(env)
        self._seed = seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        del seed
        return self.env.reset(seed=self._seed(), options=options)
