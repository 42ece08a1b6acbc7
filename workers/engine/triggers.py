"""Triggers, which determine when an event is due.

A trigger fires when a multiple is reached or passed, since a step of several environments may pass
over it.
"""

from typing import Final

from workers.core.protocols import ClockView, Trigger
from workers.core.types import StateTree, Unit
from workers.engine.clock import counter_reader


class IntervalTrigger:
    """Fires once for each multiple of `interval` that the clock crosses; 0 is no multiple.

    Args:
        interval: At least 1, in `unit`.
        unit: What is counted.
    """

    __slots__ = ("_in_env_steps", "_read", "interval", "next")

    def __init__(self, interval: int, unit: Unit = Unit.ENV_STEPS) -> None:
        if interval < 1:
            raise ValueError(f"an interval must be at least 1, not {interval}")
        self.interval: Final = interval
        self.next = interval
        """The next multiple."""
        self._read = counter_reader(unit)
        self._in_env_steps = unit is Unit.ENV_STEPS

    @property
    def quiet_until(self) -> int:
        """The next multiple if the unit is env_steps, else 0."""
        return self.next if self._in_env_steps else 0

    def take_due(self, clock: ClockView) -> int:
        """Returns the number of multiples crossed since the last call."""
        value = self._read(clock)
        if value < self.next:
            return 0
        crossed = int((value - self.next) // self.interval) + 1
        self.next += crossed * self.interval
        return crossed

    def skip(self, clock: ClockView) -> None:
        """Sets the next multiple to the first one above the clock, without firing."""
        self.next = int(self._read(clock) // self.interval + 1) * self.interval

    def state_dict(self) -> StateTree:
        """Returns the next multiple."""
        return {"next": self.next}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the next multiple."""
        self.next = int(state["next"])


class NeverTrigger:
    """A trigger that never fires."""

    __slots__ = ()

    next: Final = 2**63
    quiet_until: Final = 2**63

    def take_due(self, clock: ClockView) -> int:
        """Returns 0: the event is never due."""
        del clock
        return 0

    def skip(self, clock: ClockView) -> None:
        """Does nothing, since there is no next multiple."""

    def state_dict(self) -> StateTree:
        """Returns an empty state, since the trigger has none."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing, since the trigger has no state."""


def make_trigger(interval: int | Trigger | None, unit: Unit = Unit.ENV_STEPS) -> Trigger:
    """Returns a trigger for an interval in `unit`.

    `None` gives `NeverTrigger`; a trigger is returned unchanged.
    """
    if interval is None:
        return NeverTrigger()
    return IntervalTrigger(interval, unit) if isinstance(interval, int) else interval
