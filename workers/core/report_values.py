"""Reads the values of agents' learn reports."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.core.types import LearnReport


def prepare_values(values: Sequence[object]) -> object:
    """Prepares the values of reports, see `LearnReport.values`, for `read_values` in a thread.

    Tensors are stacked to one: each tensor that the thread frees passes the interpreter's lock to
    the training loop and back, so it should free one tensor and not one per report.
    """
    torch = sys.modules.get("torch")
    if torch is not None and values and all(isinstance(value, torch.Tensor) for value in values):
        return torch.stack(list(values))
    return values


def rows_of_updates(report: LearnReport) -> Sequence[Any]:
    """Returns the values of each update of a report; its means alone if no more is known."""
    return (report.values,) if report.rows is None else report.rows


def read_values(values: Any, width: int = 0) -> npt.NDArray[np.float64]:
    """Returns the values of reports as float64 [n, names].

    All tensors are copied from the device at once; the call waits for the copy.

    Args:
        values: The values of n reports, or the result of `prepare_values` for them.
        width: The number of names in the result if there are no reports.
    """
    if not len(values):
        return np.zeros((0, width))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        whole: npt.NDArray[np.float64] = values.double().cpu().numpy()
        return whole
    tensors = (
        [] if torch is None else [value for value in values if isinstance(value, torch.Tensor)]
    )
    if torch is None or not tensors:
        return np.array(values, np.float64)
    read = read_values(torch.stack(tensors))
    if len(tensors) == len(values):
        return read
    rows = iter(read)
    return np.stack(
        [
            next(rows) if isinstance(value, torch.Tensor) else np.asarray(value, np.float64)
            for value in values
        ]
    )
