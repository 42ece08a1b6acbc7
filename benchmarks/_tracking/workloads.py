"""The work that all servers get: batches of points, from one client or from many."""

from dataclasses import dataclass
from typing import Final

MAX_CLIENTS: Final = 100


@dataclass(frozen=True, slots=True)
class Steps:
    """The points of one batch: axes, and a column of values for each series."""

    env_step: list[int]
    update: list[int]
    episode: list[int]
    wall: list[float]
    """Seconds, in milliseconds."""
    series: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """Batches of `series` series with `steps` points each, from `clients` clients at once."""

    name: str
    clients: int
    steps: int
    series: int

    @property
    def points(self) -> int:
        """Points of one batch."""
        return self.steps * self.series

    def make_steps(self, number: int) -> Steps:
        """Returns the points of a client's batch with an index from 0."""
        at = range(number * self.steps, (number + 1) * self.steps)
        return Steps(
            [64 * one for one in at],
            list(at),
            [one // 7 for one in at],
            [1.7e9 + round(0.013 * one, 3) for one in at],
            {
                f"loss/{column}": [1.0 / (1 + one + column) for one in at]
                for column in range(self.series)
            },
        )


WORKLOADS: Final = (
    Workload("one client, 50 steps x 20 series", 1, 50, 20),
    Workload("one client, 1,000 points of one series", 1, 1_000, 1),
    Workload("100 clients, 10 steps x 10 series", MAX_CLIENTS, 10, 10),
)
