"""Makes environments from the definition's `EnvDefinition`."""

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as Registered

import workers.rl.envs.builtin  # noqa: F401 - registers palestra/...
from palestra.contract.envs import DEFAULT_EPISODE_STEPS, EnvDefinition
from palestra.contract.names import TRAINER_SIMULATOR, Simulator
from workers.core.errors import DefinitionError, PartNotFoundError
from workers.core.types import GoalRule
from workers.ipc.allowed_paths import list_allowed_paths
from workers.rl.envs.atari import NativeGame, make_game, make_native_vector
from workers.rl.envs.cart_pole import LEAST, CartPoleVector, SavedCartPole, is_cart_pole
from workers.rl.envs.env_paths import check_paths
from workers.rl.envs.env_sources import GAMES, ensure_registered, plain_id, register_sources
from workers.rl.envs.env_types import Env
from workers.rl.envs.goal_rule import goal_rule, has_goals
from workers.rl.envs.gym_vector import GymVector
from workers.rl.envs.learner_rewards import ReportingVector
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.space_arrays import action_layout, array_layout
from workers.rl.envs.vector import EpisodeVector, ProcessVector, SerialVector

RenderMode = Literal["rgb_array", "human"]


def make_vector(
    spec: EnvDefinition,
    num_envs: int | None = None,
    max_episode_steps: int | None = None,
    *,
    runs: int = 1,
    needs_seeded_episodes: bool = True,
) -> EpisodeVector:
    """Returns a vector environment.

    Args:
        spec: The environment's definition.
        num_envs: Number of copies; `None` takes that of `spec`.
        max_episode_steps: Time limit in env_steps; `None` takes that of `spec`, or else that of the
            registered environment, or else `find_cut`.
        runs: Number of such vectors that will be stepped together, see
            `workers.rl.envs.concatenated_vector`.
        needs_seeded_episodes: Whether each episode must depend on its seed alone. If not, ale-py's
            vector environment resets faster.

    Raises:
        PartNotFoundError: If the id is not registered on this worker, or cannot be imported.
        DefinitionError: If the environment cannot be made with these arguments, or its spaces are
            not arrays.
    """
    registered = _copy_registration(spec.id)
    limit = _limit(registered, spec, max_episode_steps)
    count = num_envs or spec.num_envs
    if spec.vectorization == "native":
        return _make_native(
            registered, spec, count, limit, needs_seeded_episodes=needs_seeded_episodes
        )
    if (
        spec.vectorization == "sync"
        and count * runs >= LEAST
        and spec.preprocessing is None
        and _has_own_simulator(registered, spec.kwargs)
    ):
        return CartPoleVector(count, limit, **spec.kwargs)
    makers: list[Callable[[], EpisodeEnv]] = [
        functools.partial(_make_one, registered, spec, index, limit) for index in range(count)
    ]
    first = makers[0]()
    if spec.vectorization == "sync":
        return SerialVector([lambda: first, *makers[1:]])
    first.close()
    return ProcessVector(makers)


def make_training_vector(spec: EnvDefinition, runs: int = 1) -> EpisodeVector:
    """Returns the vector environment that an agent is trained on.

    It is that of `make_vector`, with reported rewards if the preprocessing clips rewards or
    terminates at a lost life.

    Args:
        spec: The environment's definition.
        runs: Like that of `make_vector`.

    Raises:
        PartNotFoundError: Like `make_vector`.
        DefinitionError: Like `make_vector`.
    """
    env, options = make_vector(spec, runs=runs, needs_seeded_episodes=False), spec.preprocessing
    if options is None or not (options.clip_rewards or options.terminal_on_life_loss):
        return env
    return ReportingVector(env, options)


def make_rendered(
    spec: EnvDefinition, max_episode_steps: int | None = None, mode: RenderMode = "rgb_array"
) -> EpisodeEnv:
    """Returns one environment that renders images or opens a window.

    Raises as `make_vector` does.

    Args:
        spec: The environment's definition.
        max_episode_steps: Time limit in env_steps; `None` takes that of `spec`, or else that of the
            registered environment, or else `find_cut`.
        mode: `rgb_array` renders images; `human` opens a window. ale-py's vector environment has
            no window, so `human` uses Gymnasium's wrappers around one game instead.
    """
    registered = _copy_registration(spec.id)
    limit = _limit(registered, spec, max_episode_steps)
    if mode == "rgb_array" and spec.vectorization == "native" and spec.preprocessing is not None:
        return EpisodeEnv(
            NativeGame(_make_native(registered, spec, 1, limit), spec.preprocessing.frame_skip)
        )
    return _make_one(registered, spec, 0, limit, render_mode=mode)


def make_goal_rule(spec: EnvDefinition, env: EpisodeVector) -> GoalRule | None:
    """Returns the goal rule of an environment; `None` if it is not goal-conditioned.

    Args:
        spec: The environment's definition.
        env: The vector environment that `make_vector` made from `spec`.
    """
    if not has_goals(env.single_observation_space):
        return None
    one = (
        env.envs[0]
        if isinstance(env, SerialVector)
        else _make_one(_copy_registration(spec.id), spec, 0, None)
    )
    return goal_rule(one, env.single_observation_space)


def is_game(registered: Registered) -> bool:
    """Returns whether a registered environment is an Atari game of ale-py."""
    return str(registered.entry_point).startswith(GAMES)


@functools.cache
def log_mujoco() -> None:
    """Sends MuJoCo's warnings to the log, each text once.

    By default MuJoCo writes them to a file in the working directory.
    """
    with contextlib.suppress(ImportError):
        importlib.import_module("mujoco").set_mju_user_warning(
            functools.cache(logging.getLogger("mujoco").warning)
        )


def find_cut(spec: EnvDefinition, max_episode_steps: int | None = None) -> int | None:
    """Returns the length at which episodes are cut because nothing else limits them.

    `None` if the definition, the registration or the environment itself limits them.

    Raises:
        PartNotFoundError: Like `make_vector`.
    """
    registered = _copy_registration(spec.id)
    return None if _own_limit(registered, spec, max_episode_steps) else _cut_of(registered)


def find_simulator(spec: EnvDefinition) -> Simulator | None:
    """Returns which code computes an environment; `None` if Palestra has none of its own for it.

    Raises:
        PartNotFoundError: Like `make_vector`.
    """
    if spec.preprocessing is not None or not is_cart_pole(_copy_registration(spec.id), {}):
        return None
    return "palestra" if _prefers_own_simulators() else "registered"


def _has_own_simulator(registered: Registered, kwargs: Mapping[str, object]) -> bool:
    return _prefers_own_simulators() and is_cart_pole(registered, kwargs)


def _prefers_own_simulators() -> bool:
    return os.environ.get(TRAINER_SIMULATOR, "auto") == "auto"


def _limit(
    registered: Registered, spec: EnvDefinition, max_episode_steps: int | None
) -> int | None:
    return _own_limit(registered, spec, max_episode_steps) or _cut_of(registered)


def _own_limit(
    registered: Registered, spec: EnvDefinition, max_episode_steps: int | None
) -> int | None:
    return max_episode_steps or spec.max_episode_steps or registered.max_episode_steps


def _cut_of(registered: Registered) -> int | None:
    # ale-py ends a game after `max_num_frames_per_episode`.
    return None if is_game(registered) else DEFAULT_EPISODE_STEPS


def _copy_registration(env_id: str) -> Registered:
    """Returns a copy of the registration of an id.

    The copy is sent to subprocesses, where the id itself may not be registered.
    """
    env_id = plain_id(env_id)
    ensure_registered(env_id)
    try:
        registered = deepcopy(gym.spec(env_id))
    except (ImportError, gym.error.Error) as error:
        hint = (
            ": pip install 'palestra[atari]'"
            if env_id.startswith("ALE/") and importlib.util.find_spec(GAMES) is None
            else ""
        )
        reason = register_sources().left_out.get(env_id, error)
        raise PartNotFoundError(
            f"env.id {env_id} is not an environment of this worker: {reason}{hint}"
        ) from error
    registered.order_enforce = False
    registered.disable_env_checker = True
    return registered


def _make_native(
    registered: Registered,
    spec: EnvDefinition,
    count: int,
    limit: int | None,
    *,
    needs_seeded_episodes: bool = True,
) -> GymVector:
    assert spec.preprocessing is not None
    with _convert_errors(registered, spec):
        return make_native_vector(
            registered,
            spec.preprocessing,
            spec.kwargs,
            count,
            limit,
            needs_seeded_episodes=needs_seeded_episodes,
        )


def _make_one(
    registered: Registered,
    spec: EnvDefinition,
    index: int,
    limit: int | None,
    render_mode: str | None = None,
) -> EpisodeEnv:
    with _convert_errors(registered, spec):
        env = _make_bare(registered, spec, render_mode)
    try:
        return _wrap_episodes(registered.id, env, index, limit)
    except BaseException:
        env.close()
        raise


def _make_bare(registered: Registered, spec: EnvDefinition, render_mode: str | None) -> Env:
    if "mujoco" in str(registered.entry_point):
        log_mujoco()
    with warnings.catch_warnings():
        # Importing Box2D ends the process if its deprecation warnings are errors.
        warnings.simplefilter("ignore", DeprecationWarning)
        if spec.preprocessing is not None:
            return make_game(registered, spec.preprocessing, spec.kwargs, render_mode)
        if _has_own_simulator(registered, {}):
            registered = replace(registered, entry_point=SavedCartPole.entry_point)
        options: dict[str, Any] = {
            **spec.kwargs,
            **({} if render_mode is None else {"render_mode": render_mode}),
            "max_episode_steps": -1,
        }
        made: Env = gym.make(registered, **options)
    return made


def _wrap_episodes(env_id: str, env: Env, index: int, limit: int | None) -> EpisodeEnv:
    what = "observation_space"
    try:
        made = EpisodeEnv(env, index, limit)
        array_layout(made.declared_space)
        what = "action_space"
        action_layout(made.action_space)
    except TypeError as error:
        raise DefinitionError(f"env.id {env_id}, {what}: {error}") from error
    return made


@contextlib.contextmanager
def _convert_errors(registered: Registered, spec: EnvDefinition) -> Iterator[None]:
    """Converts exceptions from making an environment into errors that name the setting at fault."""
    try:
        check_paths(spec.kwargs, list_allowed_paths())
        yield
    except (DefinitionError, PartNotFoundError):
        raise
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        raise PartNotFoundError(
            f"env.id {registered.id} needs a package that this worker lacks: {error}"
        ) from error
    except Exception as error:
        message = (
            f"env.id {registered.id} cannot be made with env.kwargs {dict(spec.kwargs)}: "
            f"{type(error).__name__}: {error}"
        )
        raise DefinitionError(message) from error
