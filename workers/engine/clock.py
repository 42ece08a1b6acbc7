"""The counters of a run.

Only `collect`, `learn` and `end_iteration` of the engine may advance a clock; all others see it as
`ClockView`. Engines in several processes share one count of env_steps and episodes through a clock
whose `count` is atomic (`SharedClock`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from workers.core.protocols import ClockView, TimeSource
from workers.core.types import StateTree, Unit

_COUNTERS = ("env_steps", "updates", "iterations", "epochs", "episodes")


class Clock:
    """Counts env_steps, updates, iterations, epochs, episodes and seconds of a training.

    The counts continue over all attempts of a run.

    Args:
        time: Monotonic seconds.
    """

    __slots__ = (
        "_earlier_seconds",
        "_started",
        "_time",
        "env_steps",
        "episodes",
        "epochs",
        "iterations",
        "updates",
    )

    def __init__(self, time: TimeSource) -> None:
        self.env_steps = 0
        self.updates = 0
        self.iterations = 0
        self.epochs = 0
        self.episodes = 0
        self._time = time
        self._started = time()
        self._earlier_seconds = 0.0

    @property
    def wall_seconds(self) -> float:
        """Seconds since the clock was built, plus those of earlier attempts."""
        return self._earlier_seconds + self._time() - self._started

    def count(self, env_steps: int, episodes: int) -> None:
        """Adds the env_steps and episodes of one collect."""
        self.env_steps += env_steps
        self.episodes += episodes

    def state_dict(self) -> StateTree:
        """Returns all counters."""
        return {
            **{name: getattr(self, name) for name in _COUNTERS},
            "wall_seconds": self.wall_seconds,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the counters from `state`; the time between two attempts is not counted."""
        for name in _COUNTERS:
            setattr(self, name, int(state[name]))
        self._earlier_seconds = float(state["wall_seconds"])
        self._started = self._time()


@dataclass(frozen=True, slots=True)
class StillClock:
    """An immutable copy of a clock's counters, such as those of a snapshot."""

    env_steps: int
    updates: int
    iterations: int
    epochs: int
    episodes: int
    wall_seconds: float

    @classmethod
    def from_state(cls, state: StateTree) -> Self:
        """Returns the counters in the state of an engine."""
        return cls(**state["clock"])


def counter_reader(unit: Unit) -> Callable[[ClockView], float]:
    """Returns a function that reads the counter of `unit` from a clock."""
    return attrgetter(unit.value)
