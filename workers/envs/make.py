"""Makes environments from the definition's `EnvSpec`."""

import functools
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as Registered

from palestra.contract.documents import JsonScalar
from palestra.contract.envs import EnvSpec
from workers.core.errors import DefinitionError, PartNotFoundError
from workers.envs.episode import EpisodeEnv
from workers.envs.vector import EpisodeVector, ProcessVector, SerialVector, array_layout


def make_vector(spec: EnvSpec, num_envs: int | None = None, max_episode_steps: int | None = None) -> EpisodeVector:
    """Returns a vector environment.

    Args:
        spec: What to make.
        num_envs: Copies; `None` takes the spec's.
        max_episode_steps: Time limit; `None` takes the spec's, or else the environment's own.

    Raises:
        PartNotFoundError: If the id is not registered here, or cannot be imported.
        DefinitionError: If the environment cannot be made with these arguments, or its spaces are not arrays.
    """
    registered = _registered(spec.id)
    limit = _limit(registered, spec, max_episode_steps)
    makers: list[Callable[[], EpisodeEnv]] = [
        functools.partial(_make_one, registered, spec.kwargs, index, limit) for index in range(num_envs or spec.num_envs)
    ]
    first = makers[0]()
    try:
        _check_spaces(spec.id, first)
    except DefinitionError:
        first.close()
        raise
    if spec.vectorization == "sync":
        return SerialVector([lambda: first, *makers[1:]])
    first.close()
    return ProcessVector(makers)


def make_rendered(spec: EnvSpec, max_episode_steps: int | None = None) -> EpisodeEnv:
    """Returns one environment that renders pictures; raises as `make_vector` does.

    Args:
        spec: What to make.
        max_episode_steps: Time limit; `None` takes the spec's, or else the environment's own.
    """
    registered = _registered(spec.id)
    return _make_one(registered, {**spec.kwargs, "render_mode": "rgb_array"}, 0, _limit(registered, spec, max_episode_steps))


def _limit(registered: Registered, spec: EnvSpec, max_episode_steps: int | None) -> int | None:
    return max_episode_steps or spec.max_episode_steps or registered.max_episode_steps


def _registered(env_id: str) -> Registered:
    """Returns a copy of what the id stands for: processes that are started later may not know what was registered here by code."""
    try:
        registered = deepcopy(gym.spec(env_id))
    except (ImportError, gym.error.Error) as error:
        raise PartNotFoundError(f"{env_id} is not an environment of this worker: {error}") from error
    registered.order_enforce = False
    registered.disable_env_checker = True
    return registered


def _make_one(registered: Registered, kwargs: Mapping[str, JsonScalar], index: int, limit: int | None) -> EpisodeEnv:
    options: dict[str, Any] = {**kwargs, "max_episode_steps": -1}
    try:
        env: gym.Env[Any, Any] = gym.make(registered, **options)
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        raise PartNotFoundError(f"{registered.id} needs a package that this worker lacks: {error}") from error
    except Exception as error:
        message = f"{registered.id} cannot be made with env.kwargs {dict(kwargs)}: {type(error).__name__}: {error}"
        raise DefinitionError(message) from error
    return EpisodeEnv(env, index, limit)


def _check_spaces(env_id: str, env: EpisodeEnv) -> None:
    try:
        array_layout(env.observation_space)
        array_layout(env.action_space)
    except TypeError as error:
        raise DefinitionError(f"{env_id}: {error}") from error
