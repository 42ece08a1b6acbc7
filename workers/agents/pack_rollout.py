"""What the rollout agents of a pack do as one, beside the forward pass and the update.

m agents that have not left, B environments of each, T vector steps, N samples of a batch.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.agents.actor_critic import Batch
from workers.agents.rollout import Drawn, RolloutAgent
from workers.agents.state import map_tensors
from workers.core.protocols import Memory
from workers.core.types import Array, Experience, LearnReport
from workers.explorers.draws import JoinedBlocks


class RolloutsTogether:
    """Acts for all; each agent keeps its own rollout, and shuffles it with its own generator.

    Args:
        agents: Of one definition.
    """

    reads_state = True
    phase = 0

    def __init__(self, agents: Sequence[RolloutAgent]) -> None:
        self._every = self._agents = list(agents)
        self.memories: Sequence[Memory] = [agent.memory for agent in agents]
        self._draws: JoinedBlocks | None = None
        self._raw: list[Array] = []
        self._drawn: dict[int, Drawn] = {}

    def keep(self, live: Sequence[int]) -> None:
        """Says which agents are in the pack from now on."""
        self.settle()
        self._agents = [self._every[index] for index in live]
        self._draws = None

    def settle(self) -> None:
        """Brings the agents up to date: before one is looked at."""
        if self._draws is not None:
            self._draws.settle()

    def moved(self) -> None:
        """Says that an agent was brought to another state."""
        self._draws = None

    def episodes_lost(self, index: int, lost: npt.NDArray[np.bool_]) -> None:
        """Says in which environments of an agent, bool [B], the next experience does not continue the last."""
        self._every[index].episodes_lost(lost)

    # Acting

    def random_actions(self, count: int) -> Array | None:
        """Returns nothing: all actions are drawn from the policies."""
        del count
        return None

    def normalised(self, observation: Array) -> Array:
        """Returns observations [m, B, ...] as the policies take them."""
        if not self._agents[0].normalisers.observes:
            return observation
        return np.stack([agent.normalisers.observation(own) for agent, own in zip(self._agents, observation, strict=True)])

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""
        if self._draws is None:
            self._draws = JoinedBlocks([agent.draws for agent in self._agents])
        draws = self._draws
        draws.advance((len(self._agents) * count,))
        return tuple(block[draws.at].reshape(len(self._agents), count, *block.shape[2:]) for block in draws.block)

    def explored(self, raw: Array) -> Array:
        """Returns the actions [m * B, ...] of the space that stand for raw ones [m, B, ...], which are kept for the learners."""
        self._raw.append(raw)
        return self._agents[0].policy.to_space(raw.reshape(-1, *raw.shape[2:]))

    # Learning

    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""
        raw, self._raw = np.stack(self._raw, 1), []
        width = raw.shape[2]
        for index, (agent, own) in enumerate(zip(self._agents, raw, strict=True)):
            agent.acted(list(own))
            agent.observe(experience.columns(slice(index * width, (index + 1) * width)))

    def batches(self, updates: int) -> Iterator[tuple[Batch, Array | None]]:
        """Yields batches of tensors [m, N, ...], and bool [m] which agents have one, where not all do; each is to be noted."""
        streams = [agent.batches(updates) for agent in self._agents]
        while drawn := {index: one for index, stream in enumerate(streams) if (one := next(stream, None)) is not None}:
            self._drawn = drawn
            spare = next(iter(drawn.values()))
            batch = map_tensors(lambda *rows: torch.stack(rows), *(drawn.get(index, spare).batch for index in range(len(streams))))
            yield batch, None if len(drawn) == len(streams) else np.array([index in drawn for index in range(len(streams))])

    def note(self, report: Tensor, error: Tensor) -> None:
        """Takes down what the update with the last batch gave: reports [m, R] and errors [m, N]."""
        for index, drawn in self._drawn.items():
            self._agents[index].note(drawn, report[index], error[index])

    def concluded(self) -> list[LearnReport]:
        """Returns for each agent the report on all updates noted since this was last asked."""
        return [agent.concluded() for agent in self._agents]
