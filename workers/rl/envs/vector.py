"""Vector environments without autoreset, with resets by mask and episodes that can be saved."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Final, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import batch_space

from workers.core.errors import EnvironmentFailedError
from workers.core.types import Array, StateTree
from workers.rl.envs.env_checks import describe_exception
from workers.rl.envs.env_types import Info, ResetOptions, VecEnv
from workers.rl.envs.resumable_episode import EpisodeEnv, RestoredEpisode
from workers.rl.envs.space_arrays import array_layout as array_layout

StepArrays = tuple[Array, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]

_PATIENCE_SECONDS: Final = 5.0
"""How long the end of a process that has closed its pipe is waited for."""


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

    This is faster than `SerialVector` if a step takes longer than about a millisecond. After an
    exception all processes have ended.

    Args:
        makers: One picklable factory per copy, called in the subprocess.

    Raises:
        EnvironmentFailedError: If a subprocess ends while it makes its copy.
    """

    def __init__(self, makers: Sequence[Callable[[], EpisodeEnv]]) -> None:
        self.num_envs = len(makers)
        self._observation: Array = np.zeros(0)
        try:
            self._env: Any = AsyncVectorEnv(
                [partial(_SubprocessEnv, make) for make in makers],
                copy=False,
                autoreset_mode=AutoresetMode.DISABLED,
                context="spawn",
            )
        except (EOFError, OSError) as error:
            raise EnvironmentFailedError(
                "a process of the environment ended before it had made its copy: the log shows "
                f"what it wrote ({type(error).__name__})"
            ) from None
        self.single_observation_space: gym.Space[object] = self._env.get_attr("declared_space")[0]
        self.single_action_space: gym.Space[object] = self._env.single_action_space

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins episodes where `mask` [B] is true; returns the observations [B, ...]."""
        if mask.any():
            with self._end_on_error("reset"):
                observation, _ = self._env.reset(
                    seed=[int(seed) for seed in seeds], options={"reset_mask": mask.copy()}
                )
            self._observation = np.asarray(observation)
        return self._observation

    def advance(self, actions: Array) -> StepArrays:
        """Steps all slots with `actions` [B, ...]; see `EpisodeVector.advance`."""
        with self._end_on_error("a step"):
            self._observation, reward, terminated, truncated, _ = self._env.step(actions)
        return self._observation, reward, terminated, truncated

    def successes(self) -> list[bool | None]:
        """Returns for each slot whether its last finished episode succeeded."""
        return self._call("success")

    def lives(self) -> npt.NDArray[np.int64]:
        """Returns the lives left in each Atari game, int64 [B]."""
        return np.array(self._call("lives"), np.int64)

    def save_episodes(self) -> list[StateTree]:
        """Returns the episode in progress of each slot; none is in progress after an exception."""
        return [{"over": True}] * self.num_envs if self._env.closed else self._call("save_episode")

    def restore_episodes(self, episodes: list[StateTree]) -> list[RestoredEpisode]:
        """Restores the episodes in progress from `episodes`, one per slot."""
        return self._call("restore_episode", episodes)

    def close(self) -> None:
        """Ends the subprocesses."""
        with self._end_on_error("close"):
            self._env.close()

    def _call(self, name: str, *arguments: object) -> list[Any]:
        """Returns the attribute, or the result of the method, of each copy."""
        with self._end_on_error(name):
            return list(self._env.call(name, *arguments))

    @contextmanager
    def _end_on_error(self, where: str) -> Iterator[None]:
        """Ends the subprocesses after an exception, whatever they are doing."""
        try:
            yield
        except BaseException as error:
            ended = self._describe_ended() if isinstance(error, EOFError | OSError) else None
            end_pending_call(self._env)
            self._env.close(terminate=True)
            if ended is not None:
                raise EnvironmentFailedError(ended) from None
            if isinstance(error, EnvironmentFailedError) or not isinstance(error, Exception):
                raise
            raise EnvironmentFailedError(
                f"the environment raised in {where}: {describe_exception(error)}"
            ) from error

    def _describe_ended(self) -> str | None:
        """Returns how a subprocess that has ended did so; `None` if none has."""
        ended = wait([process.sentinel for process in self._env.processes], _PATIENCE_SECONDS)
        for index, process in enumerate(self._env.processes):
            if process.sentinel not in ended:
                continue
            # Its exit status is known a little later than that it has ended.
            process.join(_PATIENCE_SECONDS)
            status = process.exitcode or 0
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            return f"the process of environment {index} ended {how}: the log shows what it wrote"
        return None


class _SubprocessEnv(gym.Wrapper[Any, Any, Any, Any]):
    """One copy of a `ProcessVector`, in its subprocess; returns no infos, which nobody reads.

    Gymnasium would join the infos of all copies to arrays, and fail where their shapes differ.

    Args:
        make: Makes the copy.
    """

    def __init__(self, make: Callable[[], EpisodeEnv]) -> None:
        self._copy = make()
        super().__init__(self._copy)

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Array, Info]:
        observation, _ = self._copy.reset(seed=seed, options=options)
        return self._checked(observation), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, Info]:
        observation, reward, terminated, truncated, _ = self._copy.step(action)
        return self._checked(observation), reward, terminated, truncated, {}

    def _checked(self, observation: Any) -> Array:
        """Returns an observation as an array that fits the shared memory."""
        space = self.observation_space
        try:
            return np.asarray(observation, space.dtype).reshape(space.shape or ())
        except (TypeError, ValueError, OverflowError) as error:
            self._copy.refuse_observation(error)


def end_pending_call(env: Any) -> None:
    """Ends the subprocesses of an `AsyncVectorEnv` whose step or reset was interrupted.

    Their pipes hold results that nobody reads, so that `close` would wait for ever. Other vector
    environments, and those without a pending call, are left as they are.

    Args:
        env: A vector environment, which wrappers may surround.
    """
    inner = env.unwrapped
    if isinstance(inner, AsyncVectorEnv) and inner._state is not AsyncState.DEFAULT:  # noqa: SLF001
        # Gymnasium has no public way to give up a call: `close` reads its results first.
        inner._state = AsyncState.DEFAULT  # noqa: SLF001
        env.close(terminate=True)
