"""One episode that a sampler's worker runs, and the types of its steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class StepType(IntEnum):
    """Position of a step in its episode.

    The only step of an episode of length 1 is `TERMINAL` or `TIMEOUT`.
    """

    FIRST = 0
    MID = 1
    TERMINAL = 2
    TIMEOUT = 3


@dataclass(slots=True)
class Episode:
    """One episode; the lists have one element per step."""

    worker: int
    """Index of the worker that ran the episode."""
    observations: list[object] = field(default_factory=list)
    actions: list[object] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    env_infos: list[Mapping[str, object]] = field(default_factory=list)
    agent_infos: list[Mapping[str, object]] = field(default_factory=list)
    episode_info: Mapping[str, object] = field(default_factory=dict)
    last_observation: object = None
    terminated: bool = False
    """Whether the last step reached a terminal state; if not, the episode was truncated."""

    def __len__(self) -> int:
        return len(self.rewards)

    def add(
        self,
        observation: object,
        action: object,
        reward: float,
        infos: tuple[Mapping[str, object], Mapping[str, object]],
    ) -> None:
        """Appends a step; `infos` are those of the environment and of the agent."""
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(float(reward))
        self.env_infos.append(infos[0])
        self.agent_infos.append(infos[1])


def step_types(length: int, *, terminated: bool) -> npt.NDArray[np.int64]:
    """Returns the step types of one episode as int64 [length]."""
    types = np.full(length, int(StepType.MID), np.int64)
    types[:1] = int(StepType.FIRST)
    types[-1:] = int(StepType.TERMINAL if terminated else StepType.TIMEOUT)
    return types
