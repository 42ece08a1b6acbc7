"""Environments of agents: one Gymnasium environment as the engine steps it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

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
    """Returns an environment as a vector of one, whose running episode can be saved.

    Time limits that wrap the environment become limits of the vector, whose state can be restored.

    Args:
        env: The environment.
        max_episode_steps: Time limit in env_steps beside its own; `None` for none.
        seed: Returns the seed of each episode, whatever the caller of `begin` passes; `None` leaves
            it to that caller.
    """
    limits = [] if max_episode_steps is None else [max_episode_steps]
    while isinstance(env, TimeLimit):
        # Gymnasium offers no other way to read it.
        limits.append(env._max_episode_steps)  # noqa: SLF001
        env = env.env
    inner = env if seed is None else _Seeded(env, seed)
    return SerialVector([lambda: EpisodeEnv(inner, 0, min(limits, default=None))])


def copy_of(env: Env) -> Env:
    """Returns a copy of the environment, so that an evaluation does not change the original.

    Raises:
        TypeError: If it can neither be copied nor made again.
    """
    try:
        return deepcopy(env)
    except Exception as error:
        if env.spec is not None:
            return gym.make(env.spec)
        message = (
            f"env cannot be copied for evaluation ({type(error).__name__}: {error}): "
            "pass a function that makes it"
        )
        raise TypeError(message) from error


class _Seeded(gym.Wrapper[Any, Any, Any, Any]):
    """Resets the environment with seeds of its own."""

    def __init__(self, env: Env, seed: Callable[[], int]) -> None:
        super().__init__(env)
        self._seed = seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        del seed
        return self.env.reset(seed=self._seed(), options=options)
