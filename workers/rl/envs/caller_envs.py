"""Adapts environments that a caller passes in.

A caller passes one environment, a list of environments, or a vector environment of Gymnasium.

This module converts them to an `EpisodeVector`, copies them for evaluation, and reads the
statistics that they may offer. It makes no environments except as copies.
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

CallerEnvs = Env | VecEnv | Sequence[Env]
"""The environments that a caller may pass."""


def as_vector(
    env: CallerEnvs, name: str = "env", max_episode_steps: int | None = None
) -> EpisodeVector:
    """Returns an `EpisodeVector` that steps the caller's environments themselves, not copies.

    Args:
        env: One environment, a list of environments, or a vector environment whose autoreset is
            disabled.
        name: Name of the caller's parameter, for error messages.
        max_episode_steps: Length at which episodes are truncated; `None` keeps only the
            environments' own limits.

    Raises:
        TypeError: If `env` is no environment of Gymnasium, or its observations are not arrays:
            `Dict` and `Tuple` observations are not flattened, since the caller's agent may expect
            their parts.
        ValueError: If autoreset is enabled, a list contains an environment twice or environments
            with different spaces, or `max_episode_steps` is less than 1.
    """
    if max_episode_steps is not None and max_episode_steps < 1:
        raise ValueError(f"the maximum episode length must be at least 1, not {max_episode_steps}")
    envs = _members(env, name)
    if envs is None:
        vector = GymVector(_check_autoreset(env, name), max_episode_steps)
        check_is_array(vector.single_observation_space, name)
        return vector
    for one in envs:
        check_is_array(one.observation_space, name)
    if isinstance(env, VectorEnv):
        _check_autoreset(env, name)
    _check_alike(envs, name)
    return SerialVector([_maker(one, index, max_episode_steps) for index, one in enumerate(envs)])


def copy_of(env: CallerEnvs, name: str = "eval_env") -> CallerEnvs:
    """Returns an independent environment of the same kind.

    It is made from the environment's spec or factories; without these, it is a deep copy.

    Args:
        env: What `as_vector` takes.
        name: Parameter with which the caller can pass an environment instead, for the error
            message.

    Raises:
        ValueError: If the environment cannot be made from a spec and cannot be copied.
    """
    if isinstance(env, Sequence):
        return [_copy_of_one(one, name) for one in env]
    if isinstance(env, SyncVectorEnv | AsyncVectorEnv):
        return type(env)(list(env.env_fns), autoreset_mode=AutoresetMode.DISABLED)
    copied: CallerEnvs = _copy_of_one(env, name)
    return copied


def statistics_of(env: CallerEnvs) -> list[tuple[str, object]]:
    """Returns the (name, value) pairs of the environment's `get_statistics` method.

    Without that method on `env`, values are averaged over the environments within that have it. The
    list is empty if none has.
    """
    if (offered := _method(env, "get_statistics")) is not None:
        return list(offered())
    gathered: dict[str, list[Any]] = {}
    for one in _inner(env):
        for key, value in statistics_of(one):
            gathered.setdefault(key, []).append(value)
    return [(key, float(np.mean(values))) for key, values in gathered.items()]


def clear_statistics(env: CallerEnvs) -> None:
    """Calls the method `clear_statistics` of the environment, or of the environments within."""
    if (offered := _method(env, "clear_statistics")) is not None:
        offered()
        return
    for one in _inner(env):
        clear_statistics(one)


def close(env: CallerEnvs) -> None:
    """Closes the environment, or each environment of a list."""
    for one in env if isinstance(env, Sequence) else (env,):
        one.close()


def _members(env: CallerEnvs, name: str) -> list[Env] | None:
    """Returns the environments that can be stepped individually.

    Returns `None` for a vector environment that can only be stepped as a whole.
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


def _check_autoreset(env: Any, name: str) -> VecEnv:
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
    # For example, a wrapper does not record its arguments. A deep copy may still succeed.
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
