"""Base of exploring, storing and sampling for all agents of a pack.

m live agents (that have not left), in order, B environments of each, N samples of a batch, R values
of a report.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from torch import Tensor

from workers.core.types import Array, Experience, LearnReport

A = TypeVar("A")


class PackedAgents(ABC, Generic[A]):
    """Base of exploring, storing and sampling for all agents of a pack.

    Args:
        agents: Agents of one definition.
    """

    may_agents_wait = False
    """Whether there may be updates for which only some agents have a batch."""

    def __init__(self, agents: Sequence[A]) -> None:
        self._every = self._agents = list(agents)

    @property
    def phase(self) -> int:
        """Index into the algorithm's cycle of updates, modulo its length, of the next update."""
        return 0

    def keep(self, live: Sequence[int]) -> None:
        """Continues with the agents at the indices `live`; the other agents have left."""
        self.write_back()
        self._agents = [self._every[index] for index in live]
        self.discard_joined()

    @abstractmethod
    def write_back(self) -> None:
        """Writes the shared counters and generator positions back to the agents."""

    @abstractmethod
    def discard_joined(self) -> None:
        """Discards objects joined from the agents, after one was restored or some have left."""

    def random_actions(self, count: int) -> Array | None:
        """Returns actions [m * B, ...] of the space drawn uniformly, for `count` environments.

        `None` if the policies choose the actions; the default.
        """
        del count
        return None

    def normalise_step(self, observation: Array) -> Array:
        """Returns observations [m, B, ...] of a training step, normalised if the agents do so."""
        return observation

    @abstractmethod
    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""

    @abstractmethod
    def explore_actions(self, raw: Array) -> Array:
        """Returns the actions [m * B, ...] of the space for raw exploring ones [m, B, ...]."""

    @abstractmethod
    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""

    @abstractmethod
    def batches(
        self, updates: int, state: Callable[[], object]
    ) -> Iterator[tuple[Any, Array | None]]:
        """Yields batches of tensors [m, N, ...].

        The caller passes each batch to `note` before it requests the next one.

        Args:
            updates: Maximum number of batches.
            state: Returns the learning states of the agents, stacked [m, ...].

        Yields:
            A batch; and the mask bool [m] of agents that have a batch, or `None` if all have one.
        """

    @abstractmethod
    def note(self, report: Tensor, error: Tensor) -> None:
        """Stores reports [m, R] and errors [m, N] of the update with the last batch."""

    @abstractmethod
    def take_report(self) -> list[LearnReport]:
        """Returns for each agent its updates since the last call and the mean of their reports."""
