"""One environment whose episode in progress can be saved and restored.

It applies the time limit and records the actions since the reset. An episode is restored through
the environment's state protocol (`StatefulEnv`) if it has one, else by replaying the actions from
the same seed and comparing the hash of the observation.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from workers.core.errors import EnvironmentFailedError
from workers.core.rng import generator_state, load_generator_state
from workers.core.types import Array, StateTree
from workers.rl.envs.env_checks import (
    CHECKED_EPISODES,
    CHECKED_STEPS,
    UnexpectedValueError,
    check_observation,
    check_reset,
    check_reset_arity,
    check_step,
    describe_exception,
    describe_place,
    raise_fault,
    read_flag,
    read_reward,
    read_success,
)
from workers.rl.envs.env_types import Env, Info, ResetOptions
from workers.rl.envs.space_arrays import Flattener, observation_reader

MAX_RECORDED_ACTIONS: Final = 1_000_000
"""Longest episode, in actions, that is recorded: replaying a longer one takes as long as training
from the beginning.
"""


@runtime_checkable
class StatefulEnv(Protocol):
    """An environment or wrapper that can save its state in the middle of an episode.

    Its episodes are restored without replaying actions.

    The generator `np_random` is saved separately and need not be part of this state.
    """

    def snapshot_state(self) -> StateTree:
        """Returns everything that the rest of the episode depends on."""

    def restore_state(self, state: StateTree) -> None:
        """Sets an environment that was just reset to `state`."""


class RestoredEpisode(NamedTuple):
    """The result of restoring one episode."""

    observation: Array | None
    """The current observation; `None` if no episode was in progress or it was not reproduced."""
    is_reproduced: bool
    """False if the episode in progress was lost: not recorded, or the replay differed from it."""


class EpisodeEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Wraps an environment, applies a time limit, and saves and restores the episode in progress.

    An episode is also truncated when the info contains a true `needs_reset`.

    Observations of `Dict` and `Tuple` spaces are flattened, see `workers.rl.envs.space_arrays`.

    What the environment returns is checked in its first steps and episodes, see
    `workers.rl.envs.env_checks`; indices of discrete observations are always checked.

    After the end of an episode, `step` does not step the environment and returns the last
    observation, reward 0 and the same flags, until the next reset.

    Args:
        env: The environment; owned.
        index: Index of the environment in the vector environment.
        max_episode_steps: Time limit in env_steps; `None` for none.

    Raises:
        TypeError: If a part of a `Dict` or `Tuple` observation is no array.
    """

    def __init__(self, env: Env, index: int = 0, max_episode_steps: int | None = None) -> None:
        super().__init__(env)
        self._index = index
        self._limit = max_episode_steps or 2**63
        self._is_discrete = isinstance(env.action_space, gym.spaces.Discrete)
        self._action_type = (
            env.action_space.dtype if isinstance(env.action_space, gym.spaces.MultiBinary) else None
        )
        self.declared_space: gym.Space[object] = env.observation_space
        """The environment's observation space before flattening."""
        self._read = observation_reader(env.observation_space)
        if isinstance(self._read, Flattener):
            self.observation_space = self._read.space()
        self._state_holder = _find_state_protocol(env)
        self._is_recording = self._state_holder is None
        self._seed: int | None = None
        self._actions: list[Any] = []
        self._length = 0
        self._episode = 0
        """Number of resets."""
        self._unchecked_steps = CHECKED_STEPS
        self._unchecked_episodes = CHECKED_EPISODES
        shape = self.observation_space.shape
        blank = None if shape is None else np.zeros(shape, self.observation_space.dtype)
        self._last: tuple[Any, bool, bool] = (blank, True, False)
        self.success: bool | None = None
        """Whether the last finished episode succeeded, by `is_success` or `success` of its last
        info; `None` if the info contains neither.
        """

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Any, Info]:
        """Begins an episode; without a seed it cannot be restored by replaying."""
        self._seed = seed
        self._actions = []
        self._length = 0
        self._episode += 1
        try:
            result: Any = self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in reset: {describe_exception(error)}"
            ) from error
        try:
            check_reset_arity(result)
            if self._unchecked_episodes:
                self._unchecked_episodes -= 1
                check_reset(result, self.declared_space)
            observation, info = result
            if self._read is not None:
                observation = self._read(observation)
        except Exception as error:  # noqa: BLE001 - a third-party value may raise anything
            self._raise_fault(error, check_reset, result)
        self._last = (observation, False, False)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Takes one env_step, unless the episode is over."""
        last, over, cut = self._last
        if over or cut:
            return last, 0.0, over, cut, {}
        taken: Any = int(action) if self._is_discrete else np.array(action, self._action_type)
        try:
            # The environment may change its action in place.
            result: Any = self.env.step(taken if self._is_discrete else taken.copy())
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in step {self._length + 1}: {describe_exception(error)}"
            ) from error
        self._length += 1
        if self._is_recording and self._length <= MAX_RECORDED_ACTIONS:
            self._actions.append(taken)
        try:
            observation, reward, terminated, truncated, info = result
            if self._unchecked_steps:
                self._unchecked_steps -= 1
                check_step(result, self.declared_space)
            if self._read is not None:
                observation = self._read(observation)
            try:
                reward = float(reward)
            except TypeError:
                reward = read_reward(reward)
            if (
                terminated
                or truncated
                or self._length >= self._limit
                or (info and info.get("needs_reset", False))
            ):
                over, cut = self._end_episode(result)
        except Exception as error:  # noqa: BLE001 - a third-party value may raise anything
            self._raise_fault(error, check_step, result)
        self._last = (observation, over, cut)
        return observation, reward, over, cut, info

    def refuse_observation(self, error: Exception) -> NoReturn:
        """Raises an error that names what is wrong with the newest observation.

        Args:
            error: The exception that the observation caused, for example when it was stored.
        """
        self._raise_fault(error, check_observation, self._last[0])

    @property
    def lives(self) -> int:
        """Lives left in the game; only Atari games have this attribute."""
        game: Any = self.unwrapped
        return int(game.ale.lives())

    def save_episode(self) -> StateTree:
        """Returns the episode in progress, to be restored by `restore_episode`."""
        observation, terminated, truncated = self._last
        if terminated or truncated:
            return {"over": True}
        saved: StateTree = {
            "over": False,
            "seed": self._seed,
            "length": self._length,
            "hash": observation_hash(observation),
        }
        if self._state_holder is not None:
            generator = generator_state(self.env.unwrapped.np_random)
            with _convert_errors("snapshot_state"):
                state = self._state_holder.snapshot_state()
            return {
                **saved,
                "state": state,
                "observation": np.array(observation),
                "generator": generator,
            }
        if len(self._actions) == self._length:
            saved["actions"] = np.array(self._actions)
        return saved

    def restore_episode(self, episodes: list[StateTree]) -> RestoredEpisode:
        """Restores the episode in progress from `episodes[index]`.

        Args:
            episodes: Results of `save_episode` of all environments of the vector environment.
        """
        saved = episodes[self._index]
        if saved["over"]:
            return RestoredEpisode(None, is_reproduced=True)
        if "state" in saved:
            return self._restore_state(saved)
        if "actions" not in saved or saved["seed"] is None:
            return self._abandon()
        return self._replay(saved)

    def _restore_state(self, saved: StateTree) -> RestoredEpisode:
        holder = self._state_holder
        if holder is None:
            return self._abandon()
        self.reset(seed=saved["seed"])
        with _convert_errors("restore_state"):
            holder.restore_state(saved["state"])
        load_generator_state(self.env.unwrapped.np_random, saved["generator"])
        self._length = saved["length"]
        self._last = (saved["observation"], False, False)
        return RestoredEpisode(saved["observation"], is_reproduced=True)

    def _replay(self, saved: StateTree) -> RestoredEpisode:
        observation, _ = self.reset(seed=saved["seed"])
        for action in saved["actions"]:
            observation, _, terminated, truncated, _ = self.step(action)
            if terminated or truncated:
                return self._abandon()
        if observation_hash(observation) != saved["hash"]:
            return self._abandon()
        return RestoredEpisode(np.array(observation), is_reproduced=True)

    def _end_episode(self, result: Any) -> tuple[bool, bool]:
        """Returns terminated and truncated of an episode's last step, and sets `success`."""
        observation, _, terminated, truncated, info = result
        if self._unchecked_episodes:
            check_observation(observation, self.declared_space)
        over = read_flag(terminated, "terminated")
        cut = (
            read_flag(truncated, "truncated")
            or self._length >= self._limit
            or read_flag(info.get("needs_reset", False), "info['needs_reset']")
        )
        self.success = read_success(info)
        return over, cut

    def _raise_fault(
        self, error: Exception, check: Callable[[Any, gym.Space[Any]], None], returned: object
    ) -> NoReturn:
        """Raises an error that names what `check` refuses of what was returned, if anything."""
        if not isinstance(error, UnexpectedValueError):
            try:
                check(returned, self.declared_space)
            except UnexpectedValueError as found:
                error = found
        raise_fault(error, describe_place(self._length, self._episode, self._index))

    def _abandon(self) -> RestoredEpisode:
        self._last = (self._last[0], True, False)
        return RestoredEpisode(None, is_reproduced=False)


def observation_hash(observation: object) -> str:
    """Returns the SHA-256 of an observation's bytes, shape and dtype, as hexadecimal digits."""
    array = np.ascontiguousarray(observation)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()


@contextmanager
def _convert_errors(method: str) -> Iterator[None]:
    """Converts exceptions of a method of the environment."""
    try:
        yield
    except Exception as error:
        raise EnvironmentFailedError(
            f"the environment raised in {method}: {describe_exception(error)}"
        ) from error


def _find_state_protocol(env: Env) -> StatefulEnv | None:
    layer: object = env
    while True:
        if isinstance(layer, StatefulEnv):
            return layer
        if not isinstance(layer, gym.Wrapper):
            return None
        layer = layer.env
