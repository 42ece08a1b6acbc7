"""Mean and standard error of the values of a group. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean of some values.

    Attributes:
        n: Number of values.
        mean: Their mean; `None` without a value, or where it is no finite number.
        stderr: Standard error of the mean, from the sample standard deviation (divisor n - 1);
            `None` below two values, or where it is no finite number.
    """

    n: int
    mean: float | None
    stderr: float | None


def compute_group_mean(values: Sequence[float]) -> GroupMean:
    """Returns the mean of finite values with its standard error."""
    n = len(values)
    if n == 0:
        return GroupMean(0, None, None)
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(values, np.float64)
        mean = float(array.mean())
        stderr = float(array.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return GroupMean(n, _keep_finite(mean), _keep_finite(stderr))


def _keep_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
