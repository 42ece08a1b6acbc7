"""One environment whose running episode can be saved and brought back.

Owns the time limit, the record of actions since the reset, and the way back into an episode:
through the environment's own state protocol where it has one, else by replaying the actions from
the same seed and comparing the observation's hash.
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
"""Beyond so many actions an episode is no longer recorded: replaying it would take as long as
training anew.
"""


@runtime_checkable
class StatefulEnv(Protocol):
    """An environment or wrapper that can save itself in the middle of an episode.

    So nothing has to be replayed.

    Its generator (`np_random`) is saved beside this state and need not be part of it.
    """

    def snapshot_state(self) -> StateTree:
        """Returns all that the rest of the episode depends on."""

    def restore_state(self, state: StateTree) -> None:
        """Brings a freshly made environment to `state`."""


class Restored(NamedTuple):
    """The end of a way back into an episode."""

    observation: Array | None
    """The current observation.

    `None` where there is no running episode or it could not be reached.
    """
    reproduced: bool
    """False where the environment did not do the same again."""


class EpisodeEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Wraps an environment without a time limit of its own.

    Where its info says `needs_reset`, the episode is truncated.

    Observations of `Dict` and `Tuple` spaces come out as vectors, see
    `workers.rl.envs.space_arrays`.

    Stepping on after the end of an episode changes nothing and returns the last observation, reward
    0 and the same flags, so a vector environment may leave an ended slot alone.

    Args:
        env: The environment; owned.
        index: Its place in the vector environment.
        max_episode_steps: Time limit in env_steps; `None` for none.

    Raises:
        TypeError: If a part of a `Dict` or `Tuple` of observations is no array.
    """

    def __init__(self, env: Env, index: int = 0, max_episode_steps: int | None = None) -> None:
        super().__init__(env)
        self._index = index
        self._limit = max_episode_steps or 2**63
        self._discrete = isinstance(env.action_space, gym.spaces.Discrete)
        self._action_type = (
            env.action_space.dtype if isinstance(env.action_space, gym.spaces.MultiBinary) else None
        )
        self.declared_space: gym.Space[object] = env.observation_space
        """The environment's own observation space."""
        self._flatten: Flattener | None = None
        if isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple):
            self._flatten = Flattener(env.observation_space)
            self.observation_space = self._flatten.space()
        self._state_holder = _find_state_protocol(env)
        self._recording = self._state_holder is None
        self._seed: int | None = None
        self._actions: list[Any] = []
        self._length = 0
        shape = self.observation_space.shape
        blank = None if shape is None else np.zeros(shape, self.observation_space.dtype)
        self._last: tuple[Any, bool, bool] = (blank, True, False)
        self.success: bool | None = None
        """Whether the last finished episode succeeded, by `is_success` or `success` of its last
        info; `None` where neither is there.
        """

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Any, Info]:
        """Begins an episode. Without a seed it cannot be replayed."""
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
        """Steps on, unless the episode is over."""
        last, over, cut = self._last
        if over or cut:
            return last, 0.0, over, cut, {}
        action = int(action) if self._discrete else np.array(action, dtype=self._action_type)
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except Exception as error:
            raise EnvironmentFailedError(
                f"the environment raised in step {self._length + 1}: {type(error).__name__}: "
                f"{error}"
            ) from error
        self._length += 1
        if self._recording and self._length <= MAX_RECORDED_ACTIONS:
            self._actions.append(action)
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
            self.success = _success(info)
        self._last = (observation, over, cut)
        return observation, float(reward), over, cut, info

    @property
    def lives(self) -> int:
        """Lives left in an Atari game."""
        game: Any = self.unwrapped
        return int(game.ale.lives())

    def save_episode(self) -> StateTree:
        """Returns the running episode, for `restore_episode` of a newly made environment."""
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

    def restore_episode(self, episodes: list[StateTree]) -> Restored:
        """Finds back into the episode that `save_episode` returned.

        Args:
            episodes: Those of all environments of the vector environment; this one takes the one at
                its index.
        """
        saved = episodes[self._index]
        if saved["over"]:
            return Restored(None, reproduced=True)
        if "state" in saved:
            return self._restore_state(saved)
        if "actions" not in saved or saved["seed"] is None:
            return self._abandon()
        return self._replay(saved)

    def _restore_state(self, saved: StateTree) -> Restored:
        holder = self._state_holder
        if holder is None:
            return self._abandon()
        self.reset(seed=saved["seed"])
        holder.restore_state(saved["state"])
        load_generator_state(self.env.unwrapped.np_random, saved["generator"])
        self._length = saved["length"]
        self._last = (saved["observation"], False, False)
        return Restored(saved["observation"], reproduced=True)

    def _replay(self, saved: StateTree) -> Restored:
        observation, _ = self.reset(seed=saved["seed"])
        for action in saved["actions"]:
            observation, _, terminated, truncated, _ = self.step(action)
            if terminated or truncated:
                return self._abandon()
        if observation_hash(observation) != saved["hash"]:
            return self._abandon()
        return Restored(np.array(observation), reproduced=True)

    def _abandon(self) -> Restored:
        self._last = (self._last[0], True, False)
        return Restored(None, reproduced=False)


def _success(info: Mapping[str, object]) -> bool | None:
    stated = info.get("is_success", info.get("success"))
    return None if stated is None else bool(stated)


def observation_hash(observation: object) -> str:
    """Returns the SHA-256 of an observation's bytes, shape and type."""
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
