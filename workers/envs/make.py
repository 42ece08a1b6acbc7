"""Makes environments from the definition's `EnvSpec`."""

import functools
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium as gym

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
    count = num_envs or spec.num_envs
    limit = max_episode_steps or spec.max_episode_steps
    makers: list[Callable[[], EpisodeEnv]] = [functools.partial(make_episode_env, spec, index, limit) for index in range(count)]
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


def make_episode_env(spec: EnvSpec, index: int = 0, max_episode_steps: int | None = None) -> EpisodeEnv:
    """Returns one environment with its time limit, as `make_vector` steps it."""
    registered = deepcopy(_registered(spec.id))
    limit = max_episode_steps or registered.max_episode_steps
    registered.order_enforce = False
    registered.disable_env_checker = True
    try:
        options: dict[str, Any] = {**spec.kwargs, "max_episode_steps": -1}
        env: gym.Env[Any, Any] = gym.make(registered, **options)
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        raise PartNotFoundError(f"{spec.id} needs a package that this worker lacks: {error}") from error
    except Exception as error:
        raise DefinitionError(f"{spec.id} cannot be made with env.kwargs {spec.kwargs}: {type(error).__name__}: {error}") from error
    return EpisodeEnv(env, index, limit)


def _registered(env_id: str) -> gym.envs.registration.EnvSpec:
    try:
        return gym.spec(env_id)
    except (ImportError, gym.error.Error) as error:
        raise PartNotFoundError(f"{env_id} is not an environment of this worker: {error}") from error


def _check_spaces(env_id: str, env: EpisodeEnv) -> None:
    try:
        array_layout(env.observation_space)
        array_layout(env.action_space)
    except TypeError as error:
        raise DefinitionError(f"{env_id}: {error}") from error
