"""What the agents of a pack do as one, beside the forward pass and the update.

m agents that have not left, in order, B environments of each, N samples of a batch, R values of a
report.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from torch import Tensor

from workers.core.types import Array, Experience, LearnReport

A = TypeVar("A")


class PackedAgents(ABC, Generic[A]):
    """Base of what the agents of a pack do as one.

    Args:
        agents: Of one definition.
    """

    some_may_wait = False
    """Whether a batch may be one of some agents only."""

    def __init__(self, agents: Sequence[A]) -> None:
        self._every = self._agents = list(agents)

    @property
    def phase(self) -> int:
        """Entry of the algorithm's cycle that makes the next update, modulo their number."""
        return 0

    def keep(self, live: Sequence[int]) -> None:
        """Goes on with the agents of these indices."""
        self.settle()
        self._agents = [self._every[index] for index in live]
        self.moved()

    @abstractmethod
    def settle(self) -> None:
        """Brings the agents up to date, before one of them is looked at."""

    @abstractmethod
    def moved(self) -> None:
        """Is called when an agent was restored to another state."""

    def random_actions(self, count: int) -> Array | None:
        """Returns actions [m * B, ...] of the space drawn uniformly, for `count` environments.

        `None` where the policies are to act, which is always the case here.
        """
        del count
        return None

    def normalised(self, observation: Array) -> Array:
        """Returns observations [m, B, ...] of a step of training as the policies read them."""
        return observation

    @abstractmethod
    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions of each, [m, count, ...]."""

    @abstractmethod
    def explored(self, raw: Array) -> Array:
        """Returns the actions [m * B, ...] of the space for raw exploring ones [m, B, ...]."""

    @abstractmethod
    def observe(self, experience: Experience) -> None:
        """Stores experience [T, m * B, ...]."""

    @abstractmethod
    def batches(
        self, updates: int, state: Callable[[], object]
    ) -> Iterator[tuple[Any, Array | None]]:
        """Yields batches of tensors [m, N, ...], each to be noted before the next is asked for.

        Args:
            updates: Most batches.
            state: Returns the learning states of the agents, stacked [m, ...].

        Yields:
            A batch; and which agents have one, bool [m], or `None` where all do.
        """

    @abstractmethod
    def note(self, report: Tensor, error: Tensor) -> None:
        """Stores what the update with the last batch gave: reports [m, R], errors [m, N]."""

    @abstractmethod
    def concluded(self) -> list[LearnReport]:
        """Returns for each agent the report on the updates noted since the last call."""
