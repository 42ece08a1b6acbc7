"""The bounds that end a run."""

from collections.abc import Mapping
from typing import Final

from workers.core.protocols import ClockView
from workers.core.types import Unit
from workers.engine.clock import counter_reader

UNLIMITED = 2**63
"""The value of `room` for a unit without a bound."""


class Budget:
    """Bounds on the counters of a clock; the first that is reached ends the run.

    Args:
        bounds: Final value per unit, counted over all attempts of the run; `None` for no bound.
    """

    __slots__ = ("_bounds", "_by_unit", "bounds", "quiet_until")

    def __init__(self, bounds: Mapping[Unit, float | None]) -> None:
        self.bounds = {unit: bound for unit, bound in bounds.items() if bound is not None}
        if not self.bounds:
            raise ValueError(
                "a budget needs a bound in env_steps, updates, iterations, epochs, episodes or "
                "seconds"
            )
        self._by_unit = {unit: (counter_reader(unit), bound) for unit, bound in self.bounds.items()}
        self._bounds = tuple(self._by_unit.values())
        self.quiet_until: Final = (
            int(self.bounds.get(Unit.ENV_STEPS, 0)) if len(self.bounds) == 1 else 0
        )
        """The bound on env_steps, if there is no other."""

    def is_exhausted(self, clock: ClockView) -> bool:
        """Returns whether a bound is reached."""
        # A generator costs four times as much, at every iteration.
        for read, bound in self._bounds:  # noqa: SIM110
            if read(clock) >= bound:
                return True
        return False

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns the remaining amount of `unit`, at least 0; `UNLIMITED` if it has no bound."""
        if unit not in self._by_unit:
            return UNLIMITED
        read, bound = self._by_unit[unit]
        return max(0, int(bound - read(clock)))
