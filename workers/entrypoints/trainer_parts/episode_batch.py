"""Batches of whole episodes with the fields and methods of garage's `EpisodeBatch`.

Dimensions: E is the number of episodes, N the sum of their lengths (the steps of all episodes are
concatenated), P the longest episode that the environment's spec allows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from workers.core.types import Array, EpisodeEnd, Experience
from workers.entrypoints.trainer_parts.batch_checks import STEPWISE, check_batch
from workers.entrypoints.trainer_parts.column_arrays import (
    columns_of,
    concatenate_columns,
    map_columns,
    rows_of,
    stack_values,
)
from workers.entrypoints.trainer_parts.episode import Episode, StepType, step_types
from workers.rl.envs.env_types import Env


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """Spaces and time limit of an environment."""

    observation_space: gym.Space[object] | None = None
    action_space: gym.Space[object] | None = None
    max_episode_length: int | None = None
    """In env_steps; `None` for no limit."""

    @classmethod
    def from_env(cls, env: Env, max_episode_length: int | None = None) -> Self:
        """Returns the spec of an environment.

        Args:
            env: Environment whose spaces and own time limit are used. The limit is that of its
                `spec`, which is Gymnasium's (`max_episode_steps`) or garage's
                (`max_episode_length`); a wrapper without a spec has that of the inner environment.
            max_episode_length: Another limit in env_steps, of which the smaller one is used; `None`
                for no other limit.
        """
        limits = [limit for limit in (_own_limit(env), max_episode_length) if limit is not None]
        return cls(env.observation_space, env.action_space, min(limits, default=None))


def _own_limit(env: object) -> int | None:
    """Returns the time limit of an environment's own spec in env_steps; `None` if it has none."""
    spec = getattr(env, "spec", None) or getattr(getattr(env, "unwrapped", None), "spec", None)
    for name in ("max_episode_steps", "max_episode_length"):
        if (limit := getattr(spec, name, None)) is not None:
            return int(limit)
    return None


class EpisodeBatch:
    """A batch of whole episodes.

    For steps that lack an info, its value is NaN (numbers) or None (other values).

    Args:
        env_spec: Object with `max_episode_length`, the P of padded arrays; if it is `None`, P is
            the longest episode of the batch.
        episode_infos: Infos of the resets, by name: [E, ...].
        observations: [N, ...]: the observations for which the actions were chosen.
        last_observations: [E, ...]: the observation after the last step of each episode.
        actions: [N, ...].
        rewards: [N].
        env_infos: By name, [N, ...].
        agent_infos: By name, [N, ...].
        step_types: int64 [N] of `StepType`.
        lengths: Integers [E], in env_steps.
        workers: int64 [E]: index of the worker that ran the episode; `None` for all 0.

    Raises:
        ValueError: If a value is not an array, or its first dimension is not the one given above.
    """

    def __init__(  # noqa: PLR0917 - names and order are those of garage
        self,
        env_spec: object,
        episode_infos: Mapping[str, object],
        observations: Array,
        last_observations: Array,
        actions: Array,
        rewards: Array,
        env_infos: Mapping[str, object],
        agent_infos: Mapping[str, object],
        step_types: Array,
        lengths: Array,
        *,
        workers: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.env_spec = env_spec
        self.episode_infos_by_episode = dict(episode_infos)
        """Infos of the resets, by name: [E, ...]."""
        self.observations = observations
        self.last_observations = last_observations
        self.actions = actions
        self.rewards = rewards
        self.env_infos = dict(env_infos)
        self.agent_infos = dict(agent_infos)
        self.step_types = step_types
        self.lengths = lengths
        self.workers = np.zeros(len(lengths), np.int64) if workers is None else workers
        check_batch(self)

    @classmethod
    def from_episodes(cls, episodes: Sequence[Episode], env_spec: object = None) -> Self:
        """Returns a batch of `episodes`, in their order.

        Raises:
            ValueError: If `episodes` is empty.
        """
        if not episodes:
            raise ValueError("a batch needs at least one episode")
        before = [one for episode in episodes for one in episode.observations]
        observations = stack_values([*before, *(episode.last_observation for episode in episodes)])
        return cls(
            env_spec=EnvSpec() if env_spec is None else env_spec,
            episode_infos=columns_of([episode.episode_info for episode in episodes]),
            observations=observations[: len(before)],
            last_observations=observations[len(before) :],
            actions=stack_values([one for episode in episodes for one in episode.actions]),
            rewards=np.array([one for episode in episodes for one in episode.rewards], np.float64),
            env_infos=columns_of([one for episode in episodes for one in episode.env_infos]),
            agent_infos=columns_of([one for episode in episodes for one in episode.agent_infos]),
            step_types=np.concatenate(
                [step_types(len(one), terminated=one.terminated) for one in episodes]
            ),
            lengths=np.array([len(episode) for episode in episodes], np.int64),
            workers=np.array([episode.worker for episode in episodes], np.int64),
        )

    @classmethod
    def concatenate(cls, *batches: "EpisodeBatch") -> Self:
        """Concatenates batches; the result has the spec of the first one.

        Raises:
            ValueError: If there is no batch, or the names of infos differ between batches.
        """
        if not batches:
            raise ValueError("a batch needs at least one episode: give concatenate a batch")
        for name in ("env_infos", "agent_infos", "episode_infos_by_episode"):
            if any(
                getattr(one, name).keys() != getattr(batches[0], name).keys() for one in batches
            ):
                have = [sorted(getattr(one, name)) for one in batches]
                raise ValueError(
                    f"{name} of the batches have different names, so they cannot become one: {have}"
                )
        return cls(
            env_spec=batches[0].env_spec,
            episode_infos=concatenate_columns([one.episode_infos_by_episode for one in batches]),
            observations=np.concatenate([one.observations for one in batches]),
            last_observations=np.concatenate([one.last_observations for one in batches]),
            actions=np.concatenate([one.actions for one in batches]),
            rewards=np.concatenate([one.rewards for one in batches]),
            env_infos=concatenate_columns([one.env_infos for one in batches]),
            agent_infos=concatenate_columns([one.agent_infos for one in batches]),
            step_types=np.concatenate([one.step_types for one in batches]),
            lengths=np.concatenate([one.lengths for one in batches]),
            workers=np.concatenate([one.workers for one in batches]),
        )

    @classmethod
    def from_list(cls, env_spec: Any, paths: Sequence[Mapping[str, Any]]) -> Self:
        """Returns a batch of episodes given as dictionaries; the inverse of `to_list`.

        Args:
            env_spec: See the class.
            paths: One dictionary per episode of T steps: `observations` [T, ...], or [T + 1, ...]
                with the observation after the last step; `next_observations` [T, ...] (if both are
                missing, the last observation is repeated as its successor); `actions` [T, ...];
                `rewards` [T]; `step_types` [T], or `dones` [T], which are true in terminal states;
                `env_infos` and `agent_infos`, by name, [T, ...]; `episode_infos`, by name.

        Raises:
            ValueError: If `paths` is empty, or an episode has neither `step_types` nor `dones`.
        """
        if not paths:
            raise ValueError("a batch needs at least one episode: paths is empty")
        lengths = np.array([len(path["rewards"]) for path in paths], np.int64)
        whole = [
            len(path["observations"]) == length + 1
            for path, length in zip(paths, lengths, strict=True)
        ]
        infos = [path.get("episode_infos") or {} for path in paths]
        return cls(
            env_spec,
            {name: np.stack([np.asarray(one[name]) for one in infos]) for name in infos[0]},
            np.concatenate(
                [path["observations"][:length] for path, length in zip(paths, lengths, strict=True)]
            ),
            np.stack(
                [
                    _last_observation(path, has_last=has_last)
                    for path, has_last in zip(paths, whole, strict=True)
                ]
            ),
            np.concatenate([path["actions"] for path in paths]),
            np.concatenate([path["rewards"] for path in paths]),
            concatenate_columns([path.get("env_infos") or {} for path in paths]),
            concatenate_columns([path.get("agent_infos") or {} for path in paths]),
            np.concatenate([_step_types_in(path) for path in paths]),
            lengths,
        )

    def __len__(self) -> int:
        """Returns the number of episodes."""
        return len(self.lengths)

    # Parts

    def slices(self) -> Iterator[slice]:
        """Yields the slice of each episode's steps in the arrays [N, ...]."""
        begin = 0
        for length in self.lengths.tolist():
            yield slice(begin, begin + length)
            begin += length

    def split(self) -> list["EpisodeBatch"]:
        """Returns a batch per episode; the inverse of `concatenate`."""
        return [
            self._part(slice(index, index + 1), steps) for index, steps in enumerate(self.slices())
        ]

    def to_list(self) -> list[dict[str, Any]]:
        """Returns one dict per episode.

        Its keys are `observations`, `next_observations`, `actions`, `rewards`, `step_types`,
        `env_infos`, `agent_infos` and `episode_infos`.
        """
        return [
            {
                **{name: getattr(self, name)[steps] for name in ("next_observations", *STEPWISE)},
                "env_infos": rows_of(self.env_infos, steps),
                "agent_infos": rows_of(self.agent_infos, steps),
                "episode_infos": rows_of(self.episode_infos_by_episode, index),
            }
            for index, steps in enumerate(self.slices())
        ]

    @property
    def observations_list(self) -> list[Array]:
        """The observations of each episode, as a list of arrays [T, ...]."""
        return [self.observations[steps] for steps in self.slices()]

    @property
    def actions_list(self) -> list[Array]:
        """The actions of each episode, as a list of arrays [T, ...]."""
        return [self.actions[steps] for steps in self.slices()]

    # Steps

    @cached_property
    def next_observations(self) -> Array:
        """[N, ...]: the observation after each step, the last steps of episodes included."""
        successors = np.roll(self.observations, -1, axis=0)
        successors[self._ends] = self.last_observations
        return successors

    @cached_property
    def terminated(self) -> npt.NDArray[np.bool_]:
        """Bool [N]: whether the step reached a terminal state."""
        return np.asarray(self.step_types == StepType.TERMINAL)

    @property
    def terminals(self) -> npt.NDArray[np.bool_]:
        """The same as `terminated`."""
        return self.terminated

    @cached_property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """Bool [N]: whether the episode was truncated after this step."""
        truncated = np.zeros(len(self.rewards), np.bool_)
        truncated[self._ends] = ~self.terminated[self._ends]
        return truncated

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """float64 [E]: undiscounted returns."""
        return np.array([self.rewards[steps].sum() for steps in self.slices()], np.float64)

    @property
    def episode_infos(self) -> dict[str, Any]:
        """Infos of the resets by name, repeated for each step of their episode: [N, ...]."""
        return map_columns(
            self.episode_infos_by_episode, lambda column: np.repeat(column, self.lengths, axis=0)
        )

    # Padded arrays

    @property
    def padded_observations(self) -> Array:
        """Observations [E, P, ...], zero after the end of an episode."""
        return self._padded(self.observations)

    @property
    def padded_next_observations(self) -> Array:
        """Next observations [E, P, ...], zero after the end of an episode."""
        return self._padded(self.next_observations)

    @property
    def padded_actions(self) -> Array:
        """Actions [E, P, ...], zero after the end of an episode."""
        return self._padded(self.actions)

    @property
    def padded_rewards(self) -> Array:
        """Rewards [E, P], zero after the end of an episode."""
        return self._padded(self.rewards)

    @property
    def padded_step_types(self) -> Array:
        """Step types [E, P], zero after the end of an episode."""
        return self._padded(self.step_types)

    @property
    def valids(self) -> Array:
        """Mask [E, P] of the rewards' dtype: 1 for steps of the episode, 0 after its end."""
        return self._padded(np.ones_like(self.rewards))

    @property
    def padded_env_infos(self) -> dict[str, Any]:
        """Infos of the environment by name, [E, P, ...], zero after the end of an episode."""
        return map_columns(self.env_infos, self._padded)

    @property
    def padded_agent_infos(self) -> dict[str, Any]:
        """Infos of the policy by name, [E, P, ...], zero after the end of an episode."""
        return map_columns(self.agent_infos, self._padded)

    # Private

    @property
    def _ends(self) -> npt.NDArray[np.int64]:
        """Index of the last step of each episode."""
        return np.asarray(np.cumsum(self.lengths) - 1)

    def _part(self, episodes: slice, steps: slice) -> "EpisodeBatch":
        return EpisodeBatch(
            self.env_spec,
            rows_of(self.episode_infos_by_episode, episodes),
            self.observations[steps],
            self.last_observations[episodes],
            self.actions[steps],
            self.rewards[steps],
            rows_of(self.env_infos, steps),
            rows_of(self.agent_infos, steps),
            self.step_types[steps],
            self.lengths[episodes],
            workers=self.workers[episodes],
        )

    def _padded(self, column: Array) -> Array:
        limit = getattr(self.env_spec, "max_episode_length", None)
        longest = int(self.lengths.max())
        if limit is not None and longest > limit:
            raise ValueError(
                f"an episode has {longest} steps, more than env_spec.max_episode_length, {limit}"
            )
        padded = np.zeros((len(self), limit or longest, *column.shape[1:]), column.dtype)
        padded[np.arange(padded.shape[1]) < self.lengths[:, np.newaxis]] = column
        return padded


def experience_of(batch: EpisodeBatch) -> Experience:
    """Converts a batch to `Experience` of one environment: T = N, B = 1. The arrays are views."""
    ends = [
        EpisodeEnd(int(worker), int(end), float(total), int(length), bool(batch.terminated[end]))
        for worker, end, total, length in zip(
            batch.workers, np.cumsum(batch.lengths) - 1, batch.returns, batch.lengths, strict=True
        )
    ]
    return Experience(
        batch.observations[:, None],
        batch.actions[:, None],
        batch.rewards[:, None],
        batch.terminated[:, None],
        batch.truncated[:, None],
        batch.next_observations[:, None],
        ends,
        env_steps=int(batch.lengths.sum()),
    )


def _step_types_in(path: Mapping[str, Any]) -> Array:
    if "step_types" in path:
        return np.asarray(path["step_types"])
    if "dones" not in path:
        raise ValueError(
            "an episode of paths has neither step_types nor dones, so nothing says how it ended"
        )
    return step_types(len(path["rewards"]), terminated=bool(path["dones"][-1]))


def _last_observation(path: Mapping[str, Any], *, has_last: bool) -> Any:
    if not has_last and path.get("next_observations") is not None:
        return path["next_observations"][-1]
    return path["observations"][-1]
