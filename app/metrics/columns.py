"""The points of a series as columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from app.metrics import column_codec

Ints = column_codec.Ints
Floats = column_codec.Floats

UNKNOWN: Final = -1
"""Value in an extra column for a point that has none."""


class BlockDamagedError(ValueError):
    """The bytes are not a valid block."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Points of one series in the order of their records.

    Attributes:
        seq: Record of the attempt that each point came with.
        env_step: Counter of the run at the point.
        update: Counter of the run at the point.
        episode: Counter of the run at the point.
        wall: Worker's clock in seconds since the Unix epoch.
        value: The value; may be NaN or infinite.
        extra: Further integer columns, kept for exports.
    """

    seq: Ints
    env_step: Ints
    update: Ints
    episode: Ints
    wall: Floats
    value: Floats
    extra: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def nonfinite(self) -> int:
        """The number of values that are NaN or infinite."""
        return int(len(self.value) - np.count_nonzero(np.isfinite(self.value)))


def empty() -> Columns:
    """Returns columns without points."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return Columns(none, none, none, none, nothing, nothing)


def concatenate(parts: Iterable[Columns]) -> Columns:
    """Returns the points of all parts, in their order.

    A part without one of the extra columns has `UNKNOWN` in it.
    """
    given = list(parts)
    if not given:
        return empty()
    if len(given) == 1:
        return given[0]
    join = np.concatenate
    names = dict.fromkeys(name for part in given for name in part.extra)
    return Columns(
        join([part.seq for part in given]),
        join([part.env_step for part in given]),
        join([part.update for part in given]),
        join([part.episode for part in given]),
        join([part.wall for part in given]),
        join([part.value for part in given]),
        {name: join([_get_extra(part, name) for part in given]) for name in names},
    )


def _get_extra(columns: Columns, name: str) -> Ints:
    found = columns.extra.get(name)
    return np.full(len(columns), UNKNOWN, np.int64) if found is None else found


def select(columns: Columns, keep: npt.NDArray[np.bool_ | np.int64] | slice) -> Columns:
    """Returns the points that `keep` selects: a mask, places, or a slice."""
    if not isinstance(keep, slice) and keep.dtype == np.bool_ and bool(keep.all()):
        return columns
    return Columns(
        columns.seq[keep],
        columns.env_step[keep],
        columns.update[keep],
        columns.episode[keep],
        columns.wall[keep],
        columns.value[keep],
        {name: values[keep] for name, values in columns.extra.items()},
    )
