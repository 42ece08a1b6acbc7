"""What the replay agents of a pack do as one, beside the forward pass and the update.

m agents that have not left, B environments of each, N samples of a batch, U updates.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.core.protocols import ExperienceMemory
from workers.core.types import Array, Experience, LearnReport
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.shells.base import Counted
from workers.rl.agents.shells.learning import rows_of
from workers.rl.agents.shells.replay_agent import ROWS_PER_DRAW, Batches, ReplayAgent
from workers.rl.exploration.pack_explorers import JoinedExplorers
from workers.rl.memory.pack_memory import together
from workers.rl.memory.sampling_rules import Places


class ReplaysTogether:
    """Explores, stores and samples for all.

    Every agent draws from its own generators; what they count is the same for all.

    Args:
        agents: Of one definition; nothing is stored in their memories yet.
    """

    some_may_wait = False

    def __init__(self, agents: Sequence[ReplayAgent]) -> None:
        first = agents[0]
        self._every = self._agents = list(agents)
        self._memory = together([agent.memory for agent in agents])
        self.memories: Sequence[ExperienceMemory] = self._memory.lanes
        self._parts, self._batches = first.parts, Batches(first.device)
        self._counted = first.counted
        self._explorers: JoinedExplorers | None = None
        self._settled = True
        self._places: Places = np.zeros(0, np.int64)
        self._reports: list[Tensor] = []

    def keep(self, live: Sequence[int]) -> None:
        """Says which agents are in the pack from now on."""
        self.settle()
        self._memory.keep(live)
        self._agents = [self._every[index] for index in live]
        self._explorers = None

    def settle(self) -> None:
        """Brings the agents up to date: before one is looked at."""
        if not self._settled:
            self._settled = True
            for agent in self._agents:
                agent.counted = self._counted
            if self._explorers is not None:
                self._explorers.settle()

    def moved(self) -> None:
        """Says that an agent was brought to another state."""
        self._explorers = None

    def episodes_lost(self, index: int, lost: npt.NDArray[np.bool_]) -> None:
        """Says in which environments of an agent, bool [B], the next experience does not continue
        the last.
        """
        self._memory.lanes[index].cut()
        self._every[index].parts.explorer.reset(lost)

    # Acting

    def random_actions(self, count: int) -> Array | None:
        """Returns actions [m * B, ...] of the space for `count` environments, where they are to be
        drawn evenly from it.
        """
        self._begin()
        if self._counted.at >= self._parts.random_env_steps:
            return None
        width = count // len(self._agents)
        self._count(acted=width)
        return np.concatenate([agent.random_actions(width) for agent in self._agents])

    def normalised(self, observation: Array) -> Array:
        """Returns observations [m, B, ...] as the policies take them."""
        return observation

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""
        first, *others = self._agents
        noise = first.acting_noise(count)
        return (
            _stacked([noise, *(agent.acting_noise(count) for agent in others)], 0) if noise else ()
        )

    def explored(self, raw: Array) -> Array:
        """Returns the actions of the space that exploration makes of raw ones [m, B, ...]: [m * B,
        ...].
        """
        actions = self._joined_explorers().explore(
            raw.reshape(-1, *raw.shape[2:]), self._counted.at
        )
        self._count(acted=raw.shape[1])
        return self._parts.actions.to_space(actions)

    # Learning

    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""
        self._begin()
        action = experience.action
        raw = self._parts.actions.from_space(action.reshape(-1, *action.shape[2:])).reshape(
            *action.shape[:2], *self._parts.actions.raw_shape
        )
        columns = (
            experience.reward,
            experience.next_observation,
            experience.terminated,
            experience.truncated,
        )
        self._memory.extend((experience.observation, raw, *columns))
        if experience.episodes:
            self._joined_explorers().reset(
                np.any(experience.terminated | experience.truncated, axis=0)
            )
        self._count(env_steps=experience.env_steps // len(self._agents), acted=-self._counted.acted)

    @property
    def phase(self) -> int:
        """Updates made."""
        return self._counted.updates

    def batches(
        self, updates: int, state: Callable[[], object]
    ) -> Iterator[tuple[ReplayBatch, Array | None]]:
        """Yields batches of tensors [m, N, ...] for all agents.

        Each is to be noted before the next is asked for.
        """
        del state
        size, parts = self._parts.batch_size, self._parts
        self._begin()
        if len(self._memory) < size:
            return
        at_once = 1 if parts.prioritized else max(1, ROWS_PER_DRAW // (size * len(self._agents)))
        for done in range(0, updates, at_once):
            count = min(at_once, updates - done)
            sample = self._memory.sample(count, size)
            for batch, places in zip(
                self._batches.of(sample, self._noise(count, size)), sample.places, strict=True
            ):
                self._places = places
                yield batch, None

    def note(self, report: Tensor, error: Tensor) -> None:
        """Takes down what the update with the last batch gave: reports [m, R] and errors [m, N]."""
        self._count(updates=1)
        self._reports.append(report)
        if self._parts.prioritized:
            self._memory.feedback(self._places, error.cpu().numpy())

    def concluded(self) -> list[LearnReport]:
        """Returns for each agent the report on all updates noted since this was last asked."""
        reports, self._reports = self._reports, []
        if not reports:
            return [LearnReport(0)] * len(self._agents)
        mean = reports[0] if len(reports) == 1 else torch.stack(reports).mean(0)
        return [LearnReport(len(reports), values) for values in rows_of(mean)]

    # Private

    def _begin(self) -> None:
        """Goes on from the agents' own state, where they were looked at since.

        They may have been brought to another one.
        """
        if self._settled:
            counted = {agent.counted for agent in self._agents}
            if len(counted) > 1:
                raise RuntimeError(
                    "the members of the pack stand at different places, so their next steps are not alike"
                )
            (self._counted,) = counted
            self._settled = False

    def _count(self, updates: int = 0, env_steps: int = 0, acted: int = 0) -> None:
        counted = self._counted
        self._counted = Counted(
            counted.updates + updates, counted.env_steps + env_steps, counted.acted + acted
        )

    def _joined_explorers(self) -> JoinedExplorers:
        if self._explorers is None:
            self._explorers = JoinedExplorers([agent.parts.explorer for agent in self._agents])
        return self._explorers

    def _noise(self, count: int, size: int) -> tuple[Array, ...]:
        first, *others = self._agents
        noise = first.learning_noise(count, size)
        return (
            _stacked([noise, *(agent.learning_noise(count, size) for agent in others)], 1)
            if noise
            else ()
        )


def _stacked(noise: Sequence[tuple[Array, ...]], axis: int) -> tuple[Array, ...]:
    return tuple(np.stack(parts, axis) for parts in zip(*noise, strict=True))
