"""Formulas for rates that decay with a counter, for exploration rates and learning rates.

Symbols: t is the counter, n `decay_steps`, r the initial rate, d `decay_rate`; x is t / n, or
floor(t / n) if `staircase` is set.

    exponential_decay    r * d^x
    natural_exp_decay    r * exp(-d * x)
    inverse_time_decay   r / (1 + d * x)
    polynomial_decay     (r - end) * (1 - min(t, m) / m)^power + end
    piecewise_constant   the value of the interval that contains t

m is n; with `cycle`, m is the smallest positive multiple of n that is at least t.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from workers.rl.exploration.schedules import RateSchedule

POLYNOMIAL_END: Final = 0.0001


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """Options of a decay.

    Raises:
        ValueError: If an option is out of the range that `decay_type` requires.
    """

    decay_type: str = "polynomial_decay"
    """A key of `KINDS`."""
    decay_steps: int = 100_000
    """n: the count at which x is 1, and at which a polynomial decay without `cycle` ends."""
    decay_rate: float = 0.0
    """d: required by the exponential, natural and inverse types.

    It is in (0, 1] for the exponential type, above 0 for the others.
    """
    staircase: bool = False
    """Whether x is rounded down; not for polynomial and piecewise types."""
    end: float = POLYNOMIAL_END
    """Final rate of a polynomial decay."""
    power: float = 1.0
    """Exponent of a polynomial decay."""
    cycle: bool = False
    """Whether a polynomial decay restarts, from a lower rate each time, after `decay_steps`."""
    boundaries: Sequence[float] = ()
    """Counts at which a piecewise constant rate changes, in ascending order."""
    values: Sequence[float] = ()
    """Rates of the intervals, one more than boundaries; a boundary belongs to the interval before.
    """

    def __post_init__(self) -> None:
        if self.decay_type not in KINDS:
            raise ValueError(f"decay_type: {self.decay_type!r} is none of {', '.join(KINDS)}")
        if self.decay_steps < 1:
            raise ValueError(f"decay_steps must be at least 1, not {self.decay_steps}")
        if self.decay_type == "exponential_decay" and not 0 < self.decay_rate <= 1:
            raise ValueError(
                "decay_rate must lie in (0, 1] for exponential_decay, "
                f"not {self.decay_rate}: with 0 the rate would vanish at once"
            )
        if self.decay_type in {"natural_exp_decay", "inverse_time_decay"} and self.decay_rate <= 0:
            raise ValueError(
                f"decay_rate must be above 0 for {self.decay_type}, not {self.decay_rate}: "
                "with 0 the rate would never fall"
            )
        if self.decay_type == "piecewise_constant":
            self._check_pieces()

    def schedule(self, initial: float) -> RateSchedule:
        """Returns the rate as a function of the counter, which must be at least 0.

        Args:
            initial: r, the rate at count 0; not used by `piecewise_constant`.
        """
        return partial(KINDS[self.decay_type], self, initial)

    def scaled_count(self, count: float) -> float:
        """Returns x = count / `decay_steps`, rounded down if `staircase` is set."""
        turns = count / self.decay_steps
        return float(math.floor(turns)) if self.staircase else turns

    def _check_pieces(self) -> None:
        if not self.boundaries or len(self.values) != len(self.boundaries) + 1:
            raise ValueError(
                "piecewise_constant needs boundaries, and values one more than those: "
                f"got {len(self.boundaries)} and {len(self.values)}"
            )
        if any(later <= earlier for earlier, later in pairwise(self.boundaries)):
            raise ValueError(f"boundaries must ascend, not {list(self.boundaries)}")


def _polynomial(decay: Decay, initial: float, count: float) -> float:
    span = decay.decay_steps
    if decay.cycle:
        span *= max(1, math.ceil(count / span))
    return float((initial - decay.end) * (1 - min(count, span) / span) ** decay.power + decay.end)


def _piecewise(decay: Decay, count: float) -> float:
    pairs = zip(decay.boundaries, decay.values, strict=False)
    return next((value for bound, value in pairs if count <= bound), decay.values[-1])


KINDS: Final[dict[str, Callable[[Decay, float, float], float]]] = {
    "exponential_decay": lambda decay, initial, count: float(
        initial * decay.decay_rate ** decay.scaled_count(count)
    ),
    "natural_exp_decay": lambda decay, initial, count: (
        initial * math.exp(-decay.decay_rate * decay.scaled_count(count))
    ),
    "inverse_time_decay": lambda decay, initial, count: (
        initial / (1 + decay.decay_rate * decay.scaled_count(count))
    ),
    "polynomial_decay": _polynomial,
    "piecewise_constant": lambda decay, _, count: _piecewise(decay, count),
}
"""Functions (decay, initial rate, count) that return the rate, by `decay_type`."""
