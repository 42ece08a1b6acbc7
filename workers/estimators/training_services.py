"""Budget of a model's training, and the recorder, control and time source that it uses.

A worker replaces the defaults, which record nothing and never stop the training.
"""

import time
from dataclasses import dataclass, field
from typing import ClassVar

from workers.core.null_parts import NoOrders, NoRecorder
from workers.core.protocols import ClockView, Control, Recorder, TimeSource
from workers.core.types import Unit


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """Total updates and episodes of the model at which training ends; `None` for no bound."""

    updates: int | None = None
    episodes: int | None = None

    quiet_until: ClassVar[int] = 0

    def is_exhausted(self, clock: ClockView) -> bool:
        """Returns whether a bound is reached."""
        return self.is_reached(clock.updates, clock.episodes)

    def is_reached(self, updates: int, episodes: int) -> bool:
        """Returns whether a bound is reached with these counts."""
        return (self.updates is not None and updates >= self.updates) or (
            self.episodes is not None and episodes >= self.episodes
        )

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how much of `unit` is left, at least 0; 2**63 without a bound on it."""
        if unit is Unit.UPDATES:
            bound, at = self.updates, clock.updates
        elif unit is Unit.EPISODES:
            bound, at = self.episodes, clock.episodes
        else:
            return 2**63
        return 2**63 if bound is None else max(0, bound - at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Recorder, control and time source of the trainings of one estimator or agent."""

    recorder: Recorder = field(default_factory=NoRecorder)
    control: Control = field(default_factory=NoOrders)
    time: TimeSource = time.monotonic
