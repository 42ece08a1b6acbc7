"""What agents report of their learning, read."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def read_values(values: Sequence[Any], width: int = 0) -> npt.NDArray[np.float64]:
    """Returns the values of reports, see `LearnReport.values`, as float64 [n, names]; tensors are read all at once, and waited for.

    Args:
        values: Of n reports.
        width: The number of names where there is no report.
    """
    if not values:
        return np.zeros((0, width))
    torch = sys.modules.get("torch")
    tensors = [] if torch is None else [value for value in values if isinstance(value, torch.Tensor)]
    if torch is None or not tensors:
        return np.array(values, np.float64)
    read: npt.NDArray[np.float64] = torch.stack(tensors).double().cpu().numpy()
    if len(tensors) == len(values):
        return read
    rows = iter(read)
    return np.stack([next(rows) if isinstance(value, torch.Tensor) else np.asarray(value, np.float64) for value in values])
