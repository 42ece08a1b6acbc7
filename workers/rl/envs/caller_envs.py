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
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from workers.core.errors import EnvironmentFailedError
from workers.core.types import Array, StateTree
from workers.rl.envs.env_types import Env, Info, VecEnv
from workers.rl.envs.resumable_episode import (
    MAX_RECORDED_ACTIONS,
    EpisodeEnv,
    Restored,
    observation_hash,
)
from workers.rl.envs.space_arrays import check_is_array
from workers.rl.envs.vector import EpisodeVector, SerialVector, StepArrays

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


class GymVector:
    """A vector environment of Gymnasium, autoreset disabled, whatever runs behind it.

    Args:
        env: Stepped by nobody else.
        max_episode_steps: Time limit in env_steps; `None` for none.
        resets_itself: Its ended slots begin idle episodes by themselves in the next step, unless
            they are reset before.
    """

    def __init__(
        self,
        env: VecEnv,
        max_episode_steps: int | None,
        *,
        resets_itself: bool = False,
    ) -> None:
        self._env: Any = env
        self._resets_itself = resets_itself
        self.num_envs = env.num_envs
        self.single_observation_space: gym.Space[object] = env.single_observation_space
        self.single_action_space: gym.Space[object] = env.single_action_space
        self._limit = max_episode_steps or 2**63 - 1
        self._observation: Array = np.zeros(0)
        self._terminated = np.zeros(self.num_envs, np.bool_)
        self._truncated = np.ones(self.num_envs, np.bool_)
        self._idle_over = np.ones(self.num_envs, np.bool_)
        self._info: Info = {}
        self._lengths = np.zeros(self.num_envs, np.int64)
        self._seeds = [0] * self.num_envs
        self._actions: list[list[Any]] = [[] for _ in range(self.num_envs)]

    def begin(
        self,
        mask: npt.NDArray[np.bool_],
        seeds: Sequence[int],
        since: npt.NDArray[np.int64] | None = None,
    ) -> Array:
        """Begins episodes where `mask` is true.

        With `since` [B] so many resets after the seed, where the environment counts them.
        """
        if mask.any():
            begun = self._reset(mask, seeds, since)
            self._observation = (
                np.where(_rows(mask, begun), begun, self._observation)
                if self._observation.size
                else begun
            )
            self._terminated[mask] = self._truncated[mask] = False
            self._lengths[mask] = 0
            for index in np.flatnonzero(mask).tolist():
                self._seeds[index], self._actions[index] = int(seeds[index]), []
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots; those that wait run idle episodes, which nobody sees."""
        waiting = self._terminated | self._truncated
        ended = waiting & self._idle_over
        if ended.any() and not self._resets_itself:
            self._reset(ended, [0] * self.num_envs)
        observation, reward, terminated, truncated, info = self._stepped(actions)
        self._idle_over = terminated | truncated
        running = ~waiting
        for index in np.flatnonzero(running).tolist():
            self._remember(index, actions[index])
        self._lengths[running] += 1
        truncated = (
            truncated | (self._lengths >= self._limit) | _flags(info, "needs_reset", self.num_envs)
        )
        if waiting.any():
            observation[waiting] = self._observation[waiting]
        self._observation = observation
        self._terminated = np.where(waiting, self._terminated, terminated)
        self._truncated = np.where(waiting, self._truncated, truncated)
        return (
            observation,
            np.where(waiting, 0.0, reward),
            self._terminated.copy(),
            self._truncated.copy(),
        )

    def successes(self) -> list[bool | None]:
        """Returns nothing known."""
        return [None] * self.num_envs

    def lives(self) -> npt.NDArray[np.int64]:
        """Returns the lives left in each game [B], where the infos tell."""
        return np.array(self._info["lives"], np.int64)

    def save_episodes(self) -> list[StateTree]:
        """Returns each slot's episode: its seed, its actions and the hash of its observation."""
        over = self._terminated | self._truncated
        return [
            {"over": True, **self._origin(index)} if over[index] else self._saved(index)
            for index in range(self.num_envs)
        ]

    def restore_episodes(self, episodes: list[StateTree]) -> list[Restored]:
        """Replays the episodes side by side, so that all reach their last step together.

        A shorter one begins later; one that is over begins last.
        """
        wanted = [
            index
            for index, saved in enumerate(episodes)
            if not saved["over"] and "actions" in saved
        ]
        longest = max((len(episodes[index]["actions"]) for index in wanted), default=0)
        seeds, since = (
            [int(saved.get(name, 0)) for saved in episodes] for name in ("seed", "since")
        )
        begins = longest - np.array([len(saved.get("actions", ())) for saved in episodes])
        counted = np.array(since) if any(since) else None
        self.begin(
            np.ones(self.num_envs, np.bool_),
            seeds,
            None if counted is None else np.where(begins == 0, counted, 0),
        )
        for step in range(longest + 1):
            if step:
                self.begin(begins == step, seeds, counted)
            if step < longest:
                self.advance(
                    np.stack(
                        [
                            _replayed(episodes[index], step - longest, episodes[wanted[0]])
                            for index in range(self.num_envs)
                        ]
                    )
                )
        return [self._arrived(index, saved) for index, saved in enumerate(episodes)]

    def close(self) -> None:
        """Closes the vector environment."""
        self._env.close()

    def _saved(self, index: int) -> StateTree:
        own = {
            "over": False,
            "seed": self._seeds[index],
            "hash": observation_hash(self._observation[index]),
        }
        saved: StateTree = {**own, **self._origin(index)}
        if len(self._actions[index]) == self._lengths[index]:
            saved["actions"] = np.array(self._actions[index])
        return saved

    def _origin(self, index: int) -> StateTree:
        """Returns where a slot's episode began, for environments that count their resets."""
        counted = getattr(self._env, "origin", None)
        return {} if counted is None else dict(zip(("seed", "since"), counted(index), strict=True))

    def _arrived(self, index: int, saved: StateTree) -> Restored:
        over = bool(self._terminated[index] or self._truncated[index])
        self._truncated[index] = True
        if saved["over"]:
            return Restored(None, reproduced=True)
        if (
            over
            or "actions" not in saved
            or observation_hash(self._observation[index]) != saved["hash"]
        ):
            return Restored(None, reproduced=False)
        self._truncated[index] = False
        return Restored(np.array(self._observation[index]), reproduced=True)

    def _remember(self, index: int, action: object) -> None:
        if len(self._actions[index]) < MAX_RECORDED_ACTIONS:
            self._actions[index].append(np.array(action))

    def _reset(
        self,
        mask: npt.NDArray[np.bool_],
        seeds: Sequence[int],
        since: npt.NDArray[np.int64] | None = None,
    ) -> Array:
        options = {"reset_mask": mask.copy(), **({} if since is None else {"since": since})}
        try:
            observation, self._info = self._env.reset(
                seed=[int(seed) for seed in seeds], options=options
            )
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in reset: {type(error).__name__}: {error}"
            ) from error
        return np.array(observation)

    def _stepped(self, actions: Array) -> tuple[Array, Array, Array, Array, Info]:
        try:
            observation, reward, terminated, truncated, info = self._env.step(actions)
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in a step: {type(error).__name__}: {error}"
            ) from error
        self._info = info
        return (
            np.array(observation),
            np.asarray(reward, np.float64),
            np.asarray(terminated),
            np.asarray(truncated),
            info,
        )


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
    except Exception:  # noqa: BLE001, S110 - a wrapper without a recipe, say: the copy below may still do
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


def _flags(info: Info, key: str, length: int) -> npt.NDArray[np.bool_]:
    """Reads a flag off the infos of a vector environment, where any environment may say nothing."""
    said = info.get(key)
    if said is None:
        return np.zeros(length, np.bool_)
    present = np.asarray(info.get(f"_{key}", np.ones(length, np.bool_)), np.bool_)
    return np.array([bool(one) for one in said], np.bool_) & present


def _rows(mask: npt.NDArray[np.bool_], array: Array) -> Array:
    """Returns a mask of rows [B] as one that spreads over an array [B, ...]."""
    return mask.reshape(-1, *(1,) * (array.ndim - 1))


def _replayed(saved: StateTree, place: int, other: StateTree) -> Any:
    """Returns the action at a place counted from the end.

    Of an episode that has not begun yet, any valid one.
    """
    actions = saved.get("actions", ())
    return actions[place] if len(actions) >= -place else other["actions"][0]
