"""Whole episodes side by side: what a sampler hands to an algorithm. N steps of E episodes, one episode after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, EpisodeEnd, Experience


class StepType(IntEnum):
    """Where in its episode a step lies. A terminal state that is reached in the first step counts as the end."""

    FIRST = 0
    MID = 1
    TERMINAL = 2
    TIMEOUT = 3


@dataclass(slots=True)
class Episode:
    """One episode as it was run, step by step."""

    worker: int
    """Index of the worker that ran it."""
    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    env_infos: list[Mapping[str, Any]] = field(default_factory=list)
    agent_infos: list[Mapping[str, Any]] = field(default_factory=list)
    episode_info: Mapping[str, Any] = field(default_factory=dict)
    last_observation: Any = None
    terminated: bool = False
    """True where the last step reached a terminal state; else the episode was cut."""

    def __len__(self) -> int:
        return len(self.rewards)

    def add(self, observation: Any, action: Any, reward: float, infos: tuple[Mapping[str, Any], Mapping[str, Any]]) -> None:
        """Appends a step; `infos` are those of the environment and of the agent."""
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(float(reward))
        self.env_infos.append(infos[0])
        self.agent_infos.append(infos[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeBatch:
    """Some whole episodes. An info that not every step has is NaN where it lacks (numbers) or None (everything else)."""

    observations: Array
    """[N, ...]: what each action was chosen on."""
    next_observations: Array
    """[N, ...]: the true successors, those of the ends included."""
    actions: Array
    """[N, ...]"""
    rewards: npt.NDArray[np.float64]
    """float64 [N]"""
    terminated: npt.NDArray[np.bool_]
    """bool [N]: the step reached a terminal state."""
    truncated: npt.NDArray[np.bool_]
    """bool [N]: the episode was cut after this step."""
    lengths: npt.NDArray[np.int64]
    """int64 [E], in env_steps."""
    workers: npt.NDArray[np.int64]
    """int64 [E]: index of the worker that ran the episode."""
    env_infos: dict[str, Array] = field(default_factory=dict)
    """By name, [N, ...]."""
    agent_infos: dict[str, Array] = field(default_factory=dict)
    """By name, [N, ...]."""
    episode_infos: dict[str, Array] = field(default_factory=dict)
    """By name, [E, ...]: what the reset told."""

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> Self:
        """Returns episodes as one batch, in their order.

        Raises:
            ValueError: If there is none.
        """
        if not episodes:
            raise ValueError("a batch needs at least one episode")
        successors = [one for episode in episodes for one in (*episode.observations[1:], episode.last_observation)]
        lengths = np.array([len(episode) for episode in episodes], np.int64)
        ends = np.cumsum(lengths) - 1
        terminated, truncated = np.zeros(lengths.sum(), np.bool_), np.zeros(lengths.sum(), np.bool_)
        terminated[ends] = [episode.terminated for episode in episodes]
        truncated[ends] = ~terminated[ends]
        return cls(
            observations=_stacked([one for episode in episodes for one in episode.observations]),
            next_observations=_stacked(successors),
            actions=_stacked([one for episode in episodes for one in episode.actions]),
            rewards=np.array([one for episode in episodes for one in episode.rewards], np.float64),
            terminated=terminated,
            truncated=truncated,
            lengths=lengths,
            workers=np.array([episode.worker for episode in episodes], np.int64),
            env_infos=_columns([one for episode in episodes for one in episode.env_infos]),
            agent_infos=_columns([one for episode in episodes for one in episode.agent_infos]),
            episode_infos=_columns([episode.episode_info for episode in episodes]),
        )

    def __len__(self) -> int:
        """Returns the number of episodes."""
        return len(self.lengths)

    @property
    def last_observations(self) -> Array:
        """[E, ...]: the observation after the last step of each episode."""
        last: Array = self.next_observations[np.cumsum(self.lengths) - 1]
        return last

    @property
    def step_types(self) -> npt.NDArray[np.int64]:
        """int64 [N] of `StepType`."""
        types = np.full(len(self.rewards), int(StepType.MID), np.int64)
        types[np.cumsum(self.lengths) - self.lengths] = int(StepType.FIRST)
        types[self.terminated] = int(StepType.TERMINAL)
        types[self.truncated] = int(StepType.TIMEOUT)
        return types

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """float64 [E], undiscounted."""
        return np.array([self.rewards[part].sum() for part in self.slices()], np.float64)

    def slices(self) -> Iterator[slice]:
        """Yields where each episode lies among the steps."""
        begin = 0
        for length in self.lengths.tolist():
            yield slice(begin, begin + length)
            begin += length

    def to_list(self) -> list[dict[str, Any]]:
        """Returns one dict per episode: observations, next_observations, actions, rewards, step_types and the three kinds of infos."""
        types = self.step_types
        return [
            {
                "observations": self.observations[part],
                "next_observations": self.next_observations[part],
                "actions": self.actions[part],
                "rewards": self.rewards[part],
                "step_types": types[part],
                "env_infos": {name: column[part] for name, column in self.env_infos.items()},
                "agent_infos": {name: column[part] for name, column in self.agent_infos.items()},
                "episode_infos": {name: column[index] for name, column in self.episode_infos.items()},
            }
            for index, part in enumerate(self.slices())
        ]


def experience_of(batch: EpisodeBatch) -> Experience:
    """Returns a batch as experience of one environment: T = N, B = 1. The arrays are views."""
    ends = [
        EpisodeEnd(int(worker), int(end), float(total), int(length), bool(batch.terminated[end]))
        for worker, end, total, length in zip(batch.workers, np.cumsum(batch.lengths) - 1, batch.returns, batch.lengths, strict=True)
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


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> Array:
    if all(value is None or isinstance(value, int | float | np.number | np.bool_) for value in values):
        if any(value is None for value in values):
            return np.array([np.nan if value is None else float(value) for value in values])
        return np.array(values)
    return _stacked(values)


def _stacked(values: list[Any]) -> Array:
    """Returns one array where all values are arrays of one shape, else an array of objects."""
    shapes = {
        np.shape(value) if isinstance(value, np.ndarray | np.generic | int | float | list | tuple) else None for value in _safe(values)
    }
    if len(shapes) == 1 and None not in shapes:
        array = np.array(values)
        if not array.dtype.hasobject:
            return array
    objects = np.empty(len(values), object)
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def _safe(values: list[Any]) -> list[Any]:
    """Lists whose own items differ in shape are no arrays."""
    return [None if isinstance(value, list | tuple) and _is_ragged(value) else value for value in values]


def _is_ragged(value: list[Any] | tuple[Any, ...]) -> bool:
    return len({np.shape(item) if not isinstance(item, list | tuple) else len(item) for item in value}) > 1
