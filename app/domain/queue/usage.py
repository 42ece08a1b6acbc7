"""Usage of devices with exponential decay, stored so that time alone changes no row.

A device-second consumed at time t counts `2 ** -((now - t) / HALF_LIFE)` at a later time `now`. An
account stores the sum of `2 ** ((t - LANDMARK) / HALF_LIFE)` over its device-seconds instead
(forward decay: Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009): it differs from the decayed sum
by a factor that is the same for all accounts at one time. Comparing two accounts needs no factor.
A float64 holds such sums until 1,023 half-lives after the landmark: 19 years for 7 days.
"""

import math
from datetime import UTC, datetime
from typing import Final

HALF_LIFE_SECONDS: Final = 7 * 86_400.0
"""Time after which a device-second counts half."""

QUANTUM_SECONDS: Final = 60.0
"""Device-seconds by which an attempt counts as begun earlier while it runs.

Without it, ten slots that become free together would all go to the person with the least usage,
since a job that was just started has used nothing.
"""

SECONDS_PER_WEIGHT: Final = HALF_LIFE_SECONDS / math.log(2)
"""Stored usage of a device over an interval, per difference of the weights of its ends."""

LANDMARK: Final = datetime(2026, 1, 1, tzinfo=UTC)


def weight(moment: datetime) -> float:
    """Returns the weight with which a device-second consumed at `moment` is stored."""
    return math.exp2((moment - LANDMARK).total_seconds() / HALF_LIFE_SECONDS)


def weighted_seconds(devices: int, start: datetime, end: datetime) -> float:
    """Returns the stored usage of `devices` devices over an interval.

    The integral of `weight` over the interval, times `devices`; 0 for an empty interval.
    """
    if end <= start:
        return 0.0
    elapsed = (end - start).total_seconds()
    growth = math.expm1(elapsed * math.log(2) / HALF_LIFE_SECONDS)
    return devices * weight(start) * growth * SECONDS_PER_WEIGHT


def decayed_seconds(stored: float, now: datetime) -> float:
    """Returns the decayed device-seconds of stored usage at a time."""
    return stored / weight(now)


def quantum(devices: int, now: datetime) -> float:
    """Returns the stored usage that a job is charged when it is assigned."""
    return devices * QUANTUM_SECONDS * weight(now)
