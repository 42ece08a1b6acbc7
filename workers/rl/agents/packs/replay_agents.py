"""Exploring, storing and sampling for all replay agents of a pack.

m live agents (that have not left), B environments of each, N samples of a batch, U updates.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from torch import Tensor

from workers.core.types import Array, Experience, LearnReport
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.packs.packed_agents import PackedAgents
from workers.rl.agents.shells.base import AgentCounters
from workers.rl.agents.shells.learning import reports_of
from workers.rl.agents.shells.replay_agent import Batches, ReplayAgent, stored_columns
from workers.rl.exploration.pack_explorers import JoinedExplorers
from workers.rl.memory.pack_memory import pack_memory
from workers.rl.memory.sampling_rules import Places


class PackedReplayAgents(PackedAgents[ReplayAgent]):
    """Explores, stores and samples for all replay agents of a pack.

    Every agent draws from its own generators; the counters are the same for all agents.

    Args:
        agents: Agents of one definition, with empty memories.
    """

    def __init__(self, agents: Sequence[ReplayAgent]) -> None:
        first = agents[0]
        super().__init__(agents)
        self._memory = pack_memory([agent.memory for agent in agents])
        for agent, lane in zip(agents, self._memory.lanes, strict=True):
            agent.memory = lane
        self._parts, self._batches = first.parts, Batches(first.device)
        self._counters = first.counters
        self._explorers: JoinedExplorers | None = None
        self._is_written_back = True
        self._places: Places = np.zeros(0, np.int64)
        self._reports: list[Tensor] = []

    def keep(self, live: Sequence[int]) -> None:
        """Continues with the agents at the indices `live`; the other agents have left."""
        super().keep(live)
        self._memory.keep(live)

    def write_back(self) -> None:
        """Writes the shared counters and the explorers' positions back to the agents."""
        if not self._is_written_back:
            self._is_written_back = True
            for agent in self._agents:
                agent.counters = self._counters
            if self._explorers is not None:
                self._explorers.write_back()

    def discard_joined(self) -> None:
        """Discards the joined explorers, after an agent was restored or some have left."""
        self._explorers = None

    # Acting

    def random_actions(self, count: int) -> Array | None:
        """Returns actions [m * B, ...] drawn uniformly, for `count` environments.

        `None` once the first `random_env_steps` are over.
        """
        self._begin()
        if self._counters.acted_env_steps >= self._parts.random_env_steps:
            return None
        width = count // len(self._agents)
        self._count(acted=width)
        return np.concatenate([agent.random_actions(width) for agent in self._agents])

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""
        return _stack([agent.acting_noise(count) for agent in self._agents], 0)

    def explore_actions(self, raw: Array) -> Array:
        """Applies exploration to raw actions [m, B, ...]; returns actions [m * B, ...]."""
        actions = self._joined_explorers().explore(
            raw.reshape(-1, *raw.shape[2:]), self._counters.acted_env_steps
        )
        self._count(acted=raw.shape[1])
        return self._parts.actions.to_space(actions)

    # Learning

    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""
        self._begin()
        self._memory.extend(stored_columns(self._parts.actions, experience))
        if experience.episodes:
            self._joined_explorers().reset(
                np.any(experience.terminated | experience.truncated, axis=0)
            )
        self._count(
            env_steps=experience.env_steps // len(self._agents), acted=-self._counters.acted
        )

    @property
    def phase(self) -> int:
        """Number of updates so far."""
        return self._counters.updates

    def batches(
        self, updates: int, state: Callable[[], object]
    ) -> Iterator[tuple[ReplayBatch, Array | None]]:
        """Yields batches of tensors [m, N, ...] and `None`: all agents have a batch.

        The caller passes each batch to `note` before it requests the next one.
        """
        del state
        self._begin()
        drawn = self._batches.draw(
            self._memory, self._parts, updates, self._noise, len(self._agents)
        )
        for batch, self._places in drawn:
            yield batch, None

    def note(self, report: Tensor, error: Tensor) -> None:
        """Stores the reports [m, R] of the last batch and updates priorities by errors [m, N]."""
        self._count(updates=1)
        self._reports.append(report)
        if self._parts.is_prioritized:
            self._memory.update_errors(self._places, error.cpu().numpy())

    def take_report(self) -> list[LearnReport]:
        """Returns for each agent its updates since the last call and the mean of their reports."""
        reports, self._reports = self._reports, []
        return reports_of(reports) if reports else [LearnReport(0)] * len(self._agents)

    # Private

    def _begin(self) -> None:
        """Reads the counters of the agents again if `write_back` was called since the last step.

        The agents may have been restored to another state in between.

        Raises:
            RuntimeError: If the counters differ between the agents.
        """
        if self._is_written_back:
            counters = {agent.counters for agent in self._agents}
            if len(counters) > 1:
                raise RuntimeError(
                    "the counters of the members of the pack differ, so their next steps are "
                    "not alike"
                )
            (self._counters,) = counters
            self._is_written_back = False

    def _count(self, updates: int = 0, env_steps: int = 0, acted: int = 0) -> None:
        counters = self._counters
        self._counters = AgentCounters(
            counters.updates + updates, counters.env_steps + env_steps, counters.acted + acted
        )

    def _joined_explorers(self) -> JoinedExplorers:
        if self._explorers is None:
            self._explorers = JoinedExplorers([agent.parts.explorer for agent in self._agents])
        return self._explorers

    def _noise(self, count: int, size: int) -> tuple[Array, ...]:
        return _stack([agent.learning_noise(count, size) for agent in self._agents], 1)


def _stack(noise: Sequence[tuple[Array, ...]], axis: int) -> tuple[Array, ...]:
    return tuple(np.stack(parts, axis) for parts in zip(*noise, strict=True))
