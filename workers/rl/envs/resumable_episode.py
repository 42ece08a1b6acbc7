"""One environment whose episode in progress can be saved and restored.

It applies the time limit and records the actions since the reset. An episode is restored through
the environment's state protocol (`StatefulEnv`) if it has one, else by replaying the actions from
the same seed and comparing the hash of the observation.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from workers.core.errors import EnvironmentFailedError
from workers.core.rng import generator_state, load_generator_state
from workers.core.types import Array, StateTree
from workers.rl.envs.env_types import Env, Info, ResetOptions
from workers.rl.envs.space_arrays import Flattener

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
        self._flatten: Flattener | None = None
        if isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple):
            self._flatten = Flattener(env.observation_space)
            self.observation_space = self._flatten.space()
        self._state_holder = _find_state_protocol(env)
        self._is_recording = self._state_holder is None
        self._seed: int | None = None
        self._actions: list[Any] = []
        self._length = 0
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
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in reset: {type(error).__name__}: {error}"
            ) from error
        if self._flatten is not None:
            observation = self._flatten(observation)
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
            observation, reward, terminated, truncated, info = self.env.step(
                taken if self._is_discrete else taken.copy()
            )
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in step {self._length + 1}: {type(error).__name__}: "
                f"{error}"
            ) from error
        self._length += 1
        if self._is_recording and self._length <= MAX_RECORDED_ACTIONS:
            self._actions.append(taken)
        if self._flatten is not None:
            observation = self._flatten(observation)
        if (
            terminated
            or truncated
            or self._length >= self._limit
            or (info and info.get("needs_reset", False))
        ):
            over = bool(terminated)
            cut = (
                bool(truncated)
                or self._length >= self._limit
                or bool(info.get("needs_reset", False))
            )
            self.success = _success_of(info)
        self._last = (observation, over, cut)
        return observation, float(reward), over, cut, info

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
            return {
                **saved,
                "state": self._state_holder.snapshot_state(),
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

    def _abandon(self) -> RestoredEpisode:
        self._last = (self._last[0], True, False)
        return RestoredEpisode(None, is_reproduced=False)


def _success_of(info: Mapping[str, object]) -> bool | None:
    stated = info.get("is_success", info.get("success"))
    return None if stated is None else bool(stated)


def observation_hash(observation: object) -> str:
    """Returns the SHA-256 of an observation's bytes, shape and dtype, as hexadecimal digits."""
    array = np.ascontiguousarray(observation)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()


def _find_state_protocol(env: Env) -> StatefulEnv | None:
    layer: object = env
    while True:
        if isinstance(layer, StatefulEnv):
            return layer
        if not isinstance(layer, gym.Wrapper):
            return None
        layer = layer.env
