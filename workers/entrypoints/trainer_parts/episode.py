"""One episode as a sampler's worker runs it, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class StepType(IntEnum):
    """Where in its episode a step lies.

    A terminal state that is reached in the first step counts as the end.
    """

    FIRST = 0
    MID = 1
    TERMINAL = 2
    TIMEOUT = 3


@dataclass(slots=True)
class Episode:
    """One episode as it was run, step by step."""

    worker: int
    """Index of the worker that ran it."""
    observations: list[object] = field(default_factory=list)
    actions: list[object] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    env_infos: list[Mapping[str, object]] = field(default_factory=list)
    agent_infos: list[Mapping[str, object]] = field(default_factory=list)
    episode_info: Mapping[str, object] = field(default_factory=dict)
    last_observation: object = None
    terminated: bool = False
    """True where the last step reached a terminal state; else the episode was cut."""

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
    """Returns the int64 [length] of `StepType` of one episode."""
    types = np.full(length, int(StepType.MID), np.int64)
    types[:1] = int(StepType.FIRST)
    types[-1:] = int(StepType.TERMINAL if terminated else StepType.TIMEOUT)
    return types
