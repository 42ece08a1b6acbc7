"""Formulas for rates that decay with a counter, shared by exploration rates and learning rates.

With x = t / n, where t is the counter and n `decay_steps`, and with floor(x) in its place if
`staircase` is set:

    exponential_decay    r * d^x
    natural_exp_decay    r * exp(-d * x)
    inverse_time_decay   r / (1 + d * x)
    polynomial_decay     (r - end) * (1 - min(t, m) / m)^power + end
    piecewise_constant   the value of the interval that contains t

m is n, or with `cycle` the first multiple of n that is not below t.
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
        ValueError: If an option is out of its range, or without effect for the type.
    """

    decay_type: str = "polynomial_decay"
    """One of `KINDS`."""
    decay_steps: int = 100_000
    """n: counts over which the rate falls by one unit of its formula."""
    decay_rate: float = 0.0
    """d: needed by the exponential, natural and inverse types.

    (0, 1] for the exponential one, else above 0.
    """
    staircase: bool = False
    end: float = POLYNOMIAL_END
    """Where a polynomial decay ends."""
    power: float = 1.0
    cycle: bool = False
    """Whether a polynomial decay begins again, from lower and lower, after `decay_steps`."""
    boundaries: Sequence[float] = ()
    """Ascending; for `piecewise_constant`."""
    values: Sequence[float] = ()
    """One more than boundaries: the rate up to and with the first boundary, …, behind the last one.
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
        """Returns the rate as a function of the counter, which must not be negative.

        Args:
            initial: r, the rate at 0; without a meaning for `piecewise_constant`.
        """
        return partial(KINDS[self.decay_type], self, initial)

    def turns(self, count: float) -> float:
        """Returns x."""
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
        initial * decay.decay_rate ** decay.turns(count)
    ),
    "natural_exp_decay": lambda decay, initial, count: (
        initial * math.exp(-decay.decay_rate * decay.turns(count))
    ),
    "inverse_time_decay": lambda decay, initial, count: (
        initial / (1 + decay.decay_rate * decay.turns(count))
    ),
    "polynomial_decay": _polynomial,
    "piecewise_constant": lambda decay, _, count: _piecewise(decay, count),
}
"""The types of decay by name."""
