"""Schedules of the exploration rate over env_steps.

They are functions of the counter alone, so a resumed run continues with the same values.
"""

from collections.abc import Callable
from dataclasses import dataclass

RateSchedule = Callable[[float], float]
"""A rate as a function of a counter, such as exploration strength by env_steps."""


@dataclass(frozen=True, slots=True)
class ConstantSchedule:
    """Returns the same value at every step."""

    value: float

    def __call__(self, env_steps: float) -> float:
        del env_steps
        return self.value


@dataclass(frozen=True, slots=True)
class LinearSchedule:
    """Changes linearly from `start` to `end` over `steps` env_steps, then stays at `end`."""

    start: float
    end: float
    steps: int

    def __call__(self, env_steps: float) -> float:
        """Returns start + (end - start) * env_steps / steps, and `end` from `steps` on."""
        if env_steps >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (env_steps / self.steps)
