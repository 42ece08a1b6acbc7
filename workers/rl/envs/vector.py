"""Vector environments without autoreset, with resets by mask and episodes that can be saved."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.utils import batch_space

from workers.core.types import Array, StateTree
from workers.rl.envs.env_types import Info, ResetOptions, VecEnv
from workers.rl.envs.resumable_episode import EpisodeEnv, RestoredEpisode
from workers.rl.envs.space_arrays import array_layout as array_layout

StepArrays = tuple[Array, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


class EpisodeVector(Protocol):
    """Several copies of an environment, stepped together; B copies, one slot each.

    Returned arrays are valid until the next call.
    """

    num_envs: int
    single_observation_space: gym.Space[Any]
    """Observation space as the environment declares it.

    Observations of a `Dict` or `Tuple` are returned flattened, see `workers.rl.envs.space_arrays`.
    """
    single_action_space: gym.Space[Any]

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true, each from its seed; the mask may be all false.

        Returns the current observations of all slots, [B, ...].
        """

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots; a slot whose episode is over keeps its observation, with reward 0.

        Returns:
            Observation [B, ...], reward [B], terminated [B], truncated [B].
        """

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded.

        `None` where the environment does not report success.
        """

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot."""

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from the result of `save_episodes`, one per slot."""

    def close(self) -> None:
        """Closes all copies."""


class VectorWrapper:
    """Base class of wrappers around an `EpisodeVector`; delegates everything to it.

    Args:
        env: The wrapped vector environment; owned.
    """

    def __init__(self, env: EpisodeVector) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations [B, ...]."""
        return self.env.begin(mask, seeds)

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots with `actions` [B, ...]; see `EpisodeVector.advance`."""
        return self.env.advance(actions)

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return self.env.successes()

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot."""
        return self.env.save_episodes()

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress."""
        return self.env.restore_episodes(episodes)

    def close(self) -> None:
        """Closes all copies."""
        self.env.close()


class SerialVector(VecEnv):
    """Steps the copies one after the other in this process; an `EpisodeVector`.

    Results are written to preallocated arrays, which are reused in each step.

    Args:
        makers: One factory per copy.
    """

    def __init__(self, makers: Sequence[Callable[[], EpisodeEnv]]) -> None:
        self.envs = [make() for make in makers]
        self.num_envs = len(self.envs)
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = (
            first.declared_space,
            first.action_space,
        )
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._has_plain_actions = isinstance(self.single_action_space, gym.spaces.Discrete)
        shape, dtype = array_layout(self.single_observation_space)
        self._observation = np.zeros((self.num_envs, *shape), dtype)
        self._reward = np.zeros(self.num_envs, np.float64)
        self._terminated = np.zeros(self.num_envs, np.bool_)
        self._truncated = np.zeros(self.num_envs, np.bool_)

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations [B, ...]."""
        for index in np.flatnonzero(mask).tolist():
            self._reset_one(index, seeds[index])
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots with `actions` [B, ...]; see `EpisodeVector.advance`."""
        observation, reward, terminated, truncated = (
            self._observation,
            self._reward,
            self._terminated,
            self._truncated,
        )
        chosen: Any = actions.tolist() if self._has_plain_actions else actions
        index = 0
        try:
            for index, env in enumerate(self.envs):
                observation[index], reward[index], terminated[index], truncated[index], _ = (
                    env.step(chosen[index])
                )
        except (TypeError, ValueError, OverflowError) as error:
            self.envs[index].refuse_observation(error)
        return observation, reward, terminated, truncated

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: ResetOptions | None = None
    ) -> tuple[Array, Info]:
        """Resets the slots in `options["reset_mask"]` (default: all) with Gymnasium's interface."""
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        seeds = (
            [seed + index for index in range(self.num_envs)]
            if isinstance(seed, int)
            else seed or [None] * self.num_envs
        )
        for index in np.flatnonzero(mask).tolist():
            self._reset_one(index, seeds[index], options)
        return self._observation.copy(), {}

    def step(
        self, actions: Array
    ) -> tuple[
        Array, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
    ]:
        """Steps all slots with Gymnasium's interface; the infos are empty."""
        observation, reward, terminated, truncated = self.advance(np.asarray(actions))
        return observation.copy(), reward.copy(), terminated.copy(), truncated.copy(), {}

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return [env.success for env in self.envs]

    def lives(self) -> npt.NDArray[np.int64]:
        """Returns the lives left in each Atari game, int64 [B]."""
        return np.array([env.lives for env in self.envs], np.int64)

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot."""
        return [env.save_episode() for env in self.envs]

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from `episodes`, one per slot."""
        return [env.restore_episode(episodes) for env in self.envs]

    def close_extras(self, **kwargs: object) -> None:
        """Closes all copies."""
        del kwargs
        for env in self.envs:
            env.close()

    def _reset_one(self, index: int, seed: int | None, options: ResetOptions | None = None) -> None:
        env = self.envs[index]
        observation, _ = env.reset(seed=seed, options=options)
        try:
            self._observation[index] = observation
        except (TypeError, ValueError, OverflowError) as error:
            env.refuse_observation(error)


class ProcessVector:
    """Runs each copy in its own process (Gymnasium's `AsyncVectorEnv`); an `EpisodeVector`.

    This is faster than `SerialVector` if a step takes longer than about a millisecond.

    Args:
        makers: One picklable factory per copy, called in the subprocess.
    """

    def __init__(self, makers: Sequence[Callable[[], EpisodeEnv]]) -> None:
        self._env: Any = AsyncVectorEnv(
            list(makers), copy=False, autoreset_mode=AutoresetMode.DISABLED, context="spawn"
        )
        self._observation: Array = np.zeros(0)
        self.num_envs = self._env.num_envs
        self.single_observation_space: gym.Space[object] = self._env.get_attr("declared_space")[0]
        self.single_action_space: gym.Space[object] = self._env.single_action_space

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations [B, ...]."""
        if mask.any():
            observation, _ = self._env.reset(
                seed=[int(seed) for seed in seeds], options={"reset_mask": mask.copy()}
            )
            self._observation = np.asarray(observation)
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots with `actions` [B, ...]; see `EpisodeVector.advance`."""
        self._observation, reward, terminated, truncated, _ = self._env.step(actions)
        return self._observation, reward, terminated, truncated

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return list(self._env.get_attr("success"))

    def lives(self) -> npt.NDArray[np.int64]:
        """Returns the lives left in each Atari game, int64 [B]."""
        return np.array(self._env.get_attr("lives"), np.int64)

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot."""
        return list(self._env.call("save_episode"))

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from `episodes`, one per slot."""
        return list(self._env.call("restore_episode", episodes))

    def close(self) -> None:
        """Ends the subprocesses."""
        self._env.close()
