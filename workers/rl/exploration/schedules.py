"""How the strength of an exploration changes with env_steps.

Functions of the counter alone, so a resumed run goes on where it was.
"""

from dataclasses import dataclass
from typing import Protocol

from workers.core.errors import DefinitionError


class RateSchedule(Protocol):
    """A rate as a function of a counter: exploration strength by env_steps, or a rate that decays."""

    def __call__(self, env_steps: float, /) -> float:
        """Returns the rate at this count."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same for ever."""

    value: float

    def __call__(self, env_steps: float) -> float:
        """Returns the value."""
        del env_steps
        return self.value


@dataclass(frozen=True, slots=True)
class Linear:
    """Moves evenly from `start` to `end` within `steps` env_steps, then stays."""

    start: float
    end: float
    steps: int

    def __call__(self, env_steps: float) -> float:
        """Returns start + (end - start) * env_steps / steps, and `end` from `steps` on, so from the
        beginning where that is 0.
        """
        if env_steps >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (env_steps / self.steps)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Falls by the same factor with each env_step, down to `end`."""

    start: float
    end: float
    decay: float
    """Factor per env_step, in (0, 1)."""

    def __post_init__(self) -> None:
        if not 0 < self.decay < 1:
            raise DefinitionError(
                f"an exponential decay needs a factor per env_step in (0, 1), not {self.decay}"
            )

    def __call__(self, env_steps: float) -> float:
        """Returns start * decay^env_steps, but no less than `end`."""
        return max(float(self.start * self.decay**env_steps), self.end)
