"""Adapts a vector environment of Gymnasium, with autoreset disabled, to `EpisodeVector`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from workers.core.errors import EnvironmentFailedError
from workers.core.types import Array, StateTree
from workers.rl.envs.env_checks import (
    CHECKED_STEPS,
    UnexpectedValueError,
    check_info,
    check_observation,
    check_reset_arity,
    check_step_arity,
    describe,
    describe_exception,
    describe_place,
    raise_fault,
    read_flags,
    read_rewards,
)
from workers.rl.envs.env_types import Info, VecEnv
from workers.rl.envs.resumable_episode import (
    MAX_RECORDED_ACTIONS,
    RestoredEpisode,
    observation_hash,
)
from workers.rl.envs.space_arrays import index_check
from workers.rl.envs.vector import StepArrays, end_pending_call


class GymVector:
    """Adapts any vector environment of Gymnasium to `EpisodeVector`.

    The wrapped environment always steps all slots. A slot that waits for its next episode is
    therefore stepped too, through idle episodes whose transitions are discarded.

    Args:
        env: The vector environment; nothing else may step it.
        max_episode_steps: Time limit in env_steps; `None` for none.
        resets_itself: Whether `env` resets ended slots by itself in the next step, unless they are
            reset before.
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
        self._episodes = np.zeros(self.num_envs, np.int64)
        """Number of episodes begun in each slot."""
        self._unchecked = CHECKED_STEPS
        """Number of observations that are still checked."""
        self._check_indices = index_check(self.single_observation_space)

    def begin(
        self,
        mask: npt.NDArray[np.bool_],
        seeds: Sequence[int],
        since: npt.NDArray[np.int64] | None = None,
    ) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations [B, ...].

        With `since` int64 [B], an environment that counts its resets begins the episode that
        follows that many resets after the seed.
        """
        if mask.any():
            begun = self._reset(mask, seeds, since)
            self._observation = (
                np.where(_broadcast_mask(mask, begun), begun, self._observation)
                if self._observation.size
                else begun
            )
            self._terminated[mask] = self._truncated[mask] = False
            self._lengths[mask] = 0
            self._episodes[mask] += 1
            self._check_observations(mask)
            for index in np.flatnonzero(mask).tolist():
                self._seeds[index], self._actions[index] = int(seeds[index]), []
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots with `actions` [B, ...]; see `EpisodeVector.advance`.

        Transitions of slots that wait are discarded: these keep their last observation and flags,
        with reward 0.
        """
        waiting = self._terminated | self._truncated
        ended = waiting & self._idle_over
        if ended.any() and not self._resets_itself:
            self._reset(ended, [0] * self.num_envs)
        # The environment may change its actions in place.
        observation, reward, terminated, truncated, info = self._step_env(np.array(actions))
        self._idle_over = terminated | truncated
        running = ~waiting
        for index in np.flatnonzero(running).tolist():
            self._record_action(index, actions[index])
        self._lengths[running] += 1
        truncated = (
            truncated | (self._lengths >= self._limit) | _flags(info, "needs_reset", self.num_envs)
        )
        if waiting.any():
            observation[waiting] = self._observation[waiting]
        self._observation = observation
        self._check_observations(running)
        self._terminated = np.where(waiting, self._terminated, terminated)
        self._truncated = np.where(waiting, self._truncated, truncated)
        return (
            observation,
            np.where(waiting, 0.0, reward),
            self._terminated.copy(),
            self._truncated.copy(),
        )

    def successes(self) -> list[bool | None]:
        """Returns `None` for each slot: success is not recorded."""
        return [None] * self.num_envs

    def lives(self) -> npt.NDArray[np.int64]:
        """Returns the lives left in each game, int64 [B].

        The infos of the environment must contain `lives`.
        """
        return np.array(self._info["lives"], np.int64)

    def save_episodes(self) -> list[StateTree]:
        """Returns the seed, the actions and the hash of the observation of each slot's episode."""
        over = self._terminated | self._truncated
        return [
            {"over": True, **self._origin(index)} if over[index] else self._save_episode(index)
            for index in range(self.num_envs)
        ]

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes by replaying their actions, all slots in the same steps.

        All episodes reach their last step at the same time, so shorter episodes begin later. Slots
        whose episode is over begin after the last step.
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
                            _recorded_action(episodes[index], step - longest, episodes[wanted[0]])
                            for index in range(self.num_envs)
                        ]
                    )
                )
        return [self._finish_restore(index, saved) for index, saved in enumerate(episodes)]

    def close(self) -> None:
        """Closes the vector environment."""
        self._env.close()

    def _save_episode(self, index: int) -> StateTree:
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
        """Returns the seed and the number of resets since, if the environment counts its resets.

        The result is empty for other environments.
        """
        counted = getattr(self._env, "origin", None)
        return {} if counted is None else dict(zip(("seed", "since"), counted(index), strict=True))

    def _finish_restore(self, index: int, saved: StateTree) -> RestoredEpisode:
        over = bool(self._terminated[index] or self._truncated[index])
        self._truncated[index] = True
        if saved["over"]:
            return RestoredEpisode(None, is_reproduced=True)
        if (
            over
            or "actions" not in saved
            or observation_hash(self._observation[index]) != saved["hash"]
        ):
            return RestoredEpisode(None, is_reproduced=False)
        self._truncated[index] = False
        return RestoredEpisode(np.array(self._observation[index]), is_reproduced=True)

    def _record_action(self, index: int, action: object) -> None:
        if len(self._actions[index]) < MAX_RECORDED_ACTIONS:
            self._actions[index].append(np.array(action))

    def _reset(
        self,
        mask: npt.NDArray[np.bool_],
        seeds: Sequence[int],
        since: npt.NDArray[np.int64] | None = None,
    ) -> Array:
        options = {"reset_mask": mask.copy(), **({} if since is None else {"since": since})}
        with self._convert_errors("reset"):
            result: Any = self._env.reset(seed=[int(seed) for seed in seeds], options=options)
        try:
            check_reset_arity(result)
            observation, self._info = result
            check_info(self._info)
            return self._read(observation)
        except Exception as error:  # noqa: BLE001 - a third-party value may raise anything
            raise_fault(error, "in reset")

    def _step_env(self, actions: Array) -> tuple[Array, Array, Array, Array, Info]:
        with self._convert_errors("a step"):
            result: Any = self._env.step(actions)
        try:
            check_step_arity(result)
            observation, reward, terminated, truncated, self._info = result
            check_info(self._info)
            return (
                self._read(observation),
                read_rewards(reward, self.num_envs),
                read_flags(terminated, self.num_envs, "terminated"),
                read_flags(truncated, self.num_envs, "truncated"),
                self._info,
            )
        except Exception as error:  # noqa: BLE001 - a third-party value may raise anything
            first = int(np.flatnonzero(~(self._terminated | self._truncated))[0])
            raise_fault(
                error,
                describe_place(int(self._lengths[first]) + 1, int(self._episodes[first]), first),
            )

    def _read(self, observation: Any) -> Array:
        """Returns a copy of observations as an array [B, ...]."""
        array = np.array(observation)
        if array.shape[:1] != (self.num_envs,):
            raise UnexpectedValueError(
                f"observations {describe(observation)}",
                f"return one for each of {self.num_envs} slots",
            )
        return array

    def _check_observations(self, mask: npt.NDArray[np.bool_]) -> None:
        """Checks the newest observations where `mask` [B] is true.

        The first ones are checked as `check_observation` does, later ones for their shape and for
        indices out of range.
        """
        if self._unchecked <= 0 and self._are_shaped(mask):
            return
        for index in np.flatnonzero(mask).tolist():
            self._unchecked -= 1
            try:
                check_observation(self._observation[index], self.single_observation_space)
            except UnexpectedValueError as error:
                length, episode = int(self._lengths[index]), int(self._episodes[index])
                raise_fault(error, describe_place(length, episode, index))

    def _are_shaped(self, mask: npt.NDArray[np.bool_]) -> bool:
        if self._observation.shape[1:] != self.single_observation_space.shape:
            return False
        try:
            if self._check_indices is not None:
                self._check_indices(self._observation[mask])
        except (IndexError, TypeError):
            return False
        return True

    @contextmanager
    def _convert_errors(self, where: str) -> Iterator[None]:
        """Converts what the environment raises, after its pending call was ended."""
        try:
            yield
        except BaseException as error:
            end_pending_call(self._env)
            if not isinstance(error, Exception):
                raise
            raise EnvironmentFailedError(
                f"the environment raised in {where}: {describe_exception(error)}"
            ) from error


def _flags(info: Info, key: str, length: int) -> npt.NDArray[np.bool_]:
    """Returns a flag of the infos, bool [length]; false for environments that do not report it."""
    stated = info.get(key)
    if stated is None:
        return np.zeros(length, np.bool_)
    present = np.asarray(info.get(f"_{key}", np.ones(length, np.bool_)), np.bool_)
    return np.array([bool(one) for one in stated], np.bool_) & present


def _broadcast_mask(mask: npt.NDArray[np.bool_], array: Array) -> Array:
    """Returns a mask [B] reshaped to broadcast against `array` [B, ...]."""
    return mask.reshape(-1, *(1,) * (array.ndim - 1))


def _recorded_action(saved: StateTree, place: int, other: StateTree) -> Any:
    """Returns the action at `place` < 0, counted from the end of an episode's actions.

    If the episode has fewer actions, it has not begun yet, and the action has no effect: the first
    action of `other` is used.
    """
    actions = saved.get("actions", ())
    return actions[place] if len(actions) >= -place else other["actions"][0]
