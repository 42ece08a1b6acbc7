"""Adapts environments that a caller passes in.

They are one environment, a list of them, or a vector environment of Gymnasium.

Owns the way from them to an `EpisodeVector`, copies for evaluation, and the statistics that they
may offer. Must not make environments of its own but as copies.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from workers.rl.envs.env_types import Env, VecEnv
from workers.rl.envs.gym_vector import GymVector
from workers.rl.envs.resumable_episode import (
    EpisodeEnv,
)
from workers.rl.envs.space_arrays import check_is_array
from workers.rl.envs.vector import EpisodeVector, SerialVector

Given = Env | VecEnv | Sequence[Env]
"""What a caller may hand over."""


def as_vector(env: Given, name: str = "env", max_episode_steps: int | None = None) -> EpisodeVector:
    """Returns what was handed over as an `EpisodeVector`, which steps those very objects.

    Args:
        env: One environment, a list of them, or a vector environment whose autoreset is disabled.
        name: Parameter that it came by, for errors.
        max_episode_steps: Length at which episodes are truncated; `None` for no limit but their
            own.

    Raises:
        TypeError: If it is no environment of Gymnasium, or its spaces are not arrays: `Dict` and
            `Tuple` observations are not flattened, since the caller's agent may expect their parts.
        ValueError: If it resets itself, or the environments of a list do not fit together.
    """
    if max_episode_steps is not None and max_episode_steps < 1:
        raise ValueError(f"the maximum episode length must be at least 1, not {max_episode_steps}")
    envs = _members(env, name)
    if envs is None:
        vector = GymVector(_without_autoreset(env, name), max_episode_steps)
        check_is_array(vector.single_observation_space, name)
        return vector
    for one in envs:
        check_is_array(one.observation_space, name)
    if isinstance(env, VectorEnv):
        _without_autoreset(env, name)
    _check_alike(envs, name)
    return SerialVector([_maker(one, index, max_episode_steps) for index, one in enumerate(envs)])


def copy_of(env: Given, name: str = "eval_env") -> Given:
    """Returns a second environment like the first.

    It is made from the recipe (spec or factories), or is a deep copy where there is none.

    Args:
        env: What `as_vector` takes.
        name: Parameter by which the caller can hand one over instead, for the error.

    Raises:
        ValueError: If it has no recipe and cannot be copied.
    """
    if isinstance(env, Sequence):
        return [_copy_of_one(one, name) for one in env]
    if isinstance(env, SyncVectorEnv | AsyncVectorEnv):
        return type(env)(list(env.env_fns), autoreset_mode=AutoresetMode.DISABLED)
    copied: Given = _copy_of_one(env, name)
    return copied


def statistics_of(env: Given) -> list[tuple[str, object]]:
    """Returns the pairs of an environment's own `get_statistics`, the mean over several.

    Nothing where it offers none.
    """
    if (offered := _method(env, "get_statistics")) is not None:
        return list(offered())
    gathered: dict[str, list[Any]] = {}
    for one in _inner(env):
        for key, value in statistics_of(one):
            gathered.setdefault(key, []).append(value)
    return [(key, float(np.mean(values))) for key, values in gathered.items()]


def clear_statistics(env: Given) -> None:
    """Calls `clear_statistics` where an environment, or those within, offer it."""
    if (offered := _method(env, "clear_statistics")) is not None:
        offered()
        return
    for one in _inner(env):
        clear_statistics(one)


def close(env: Given) -> None:
    """Closes what was handed over."""
    for one in env if isinstance(env, Sequence) else (env,):
        one.close()


def _members(env: Given, name: str) -> list[Env] | None:
    """Returns the environments that can be stepped one by one.

    `None` for a vector environment that only steps them together.
    """
    if isinstance(env, gym.Env):
        return [env]
    if type(env) in {SyncVectorEnv, SerialVector}:
        return list(getattr(env, "envs", ()))
    if isinstance(env, VectorEnv):
        return None
    if isinstance(env, Sequence) and env and all(isinstance(one, gym.Env) for one in env):
        return list(env)
    raise TypeError(
        f"{name}: a {type(env).__name__} is no gymnasium.Env, gymnasium.vector.VectorEnv or list "
        "of gymnasium.Env; "
        "one of the old gym can be wrapped by shimmy"
    )


def _without_autoreset(env: Any, name: str) -> VecEnv:
    mode = env.metadata.get("autoreset_mode")
    if mode is not AutoresetMode.DISABLED:
        raise ValueError(
            f"{name}: autoreset_mode is {getattr(mode, 'value', mode)}, but episodes are reset "
            "here, so that the last observation is seen: "
            "make it with autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED"
        )
    checked: VecEnv = env
    return checked


def _check_alike(envs: list[Env], name: str) -> None:
    if len({id(one) for one in envs}) != len(envs):
        raise ValueError(
            f"{name}: the list holds one environment twice, each must be an object of its own"
        )
    for index, one in enumerate(envs):
        if (one.observation_space, one.action_space) != (
            envs[0].observation_space,
            envs[0].action_space,
        ):
            raise ValueError(
                f"{name}: the spaces of environment {index} are not those of environment 0"
            )


def _maker(env: Env, index: int, limit: int | None) -> Callable[[], EpisodeEnv]:
    return lambda: EpisodeEnv(env, index, limit)


def _copy_of_one(env: Any, name: str) -> Any:
    try:
        spec = env.spec
        if spec is not None:
            return gym.make_vec(spec) if isinstance(env, VectorEnv) else gym.make(spec)
    # A wrapper without a recipe, say: the copy below may still do.
    except Exception:  # noqa: BLE001, S110
        pass
    try:
        return deepcopy(env)
    except Exception as error:
        message = (
            f"{name}: give an environment of its own for evaluation; {type(env).__name__} has no "
            "spec to make one from"
        )
        raise ValueError(
            f"{message}, and cannot be copied ({type(error).__name__}: {error})"
        ) from error


def _method(env: object, name: str) -> Callable[[], Any] | None:
    found = getattr(env, name, None)
    if found is None and isinstance(env, gym.Wrapper) and env.has_wrapper_attr(name):
        found = env.get_wrapper_attr(name)
    if found is not None and not callable(found):
        raise TypeError(f"env: {name} of {type(env).__name__} must be a method")
    return found


def _inner(env: object) -> Sequence[Any]:
    return env if isinstance(env, Sequence) else tuple(getattr(env, "envs", ()))
