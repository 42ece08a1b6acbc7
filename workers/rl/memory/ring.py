"""A ring buffer of rows in preallocated arrays.

It stores rows; its caller chooses which rows are sampled.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree

Fields = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
"""Shape and dtype of one row by field name."""


class RowRing:
    """Stores the last `capacity` rows.

    The i-th row ever written is at place i % capacity.

    Arrays of the full capacity are allocated at once.

    Args:
        capacity: Maximum number of stored rows.
        fields: Shape and dtype of one row by field name.
    """

    def __init__(self, capacity: int, fields: Fields) -> None:
        self.capacity = capacity
        self._arrays = {
            name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in fields.items()
        }
        self.total = 0
        """Rows written so far, overwritten rows included."""

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def extend(self, rows: Sequence[Array]) -> None:
        """Stores N rows in order; if N exceeds the capacity, only the last rows are kept.

        Args:
            rows: One array [N, ...] per field, in the order of the fields; converted to the dtype
                of the field.
        """
        count = len(rows[0])
        skipped = max(0, count - self.capacity)
        begin = (self.total + skipped) % self.capacity
        kept = count - skipped
        head = min(kept, self.capacity - begin)
        for array, row in zip(self._arrays.values(), rows, strict=True):
            array[begin : begin + head] = row[skipped : skipped + head]
            if head < kept:
                array[: kept - head] = row[skipped + head :]
        self.total += count

    def take(self, places: npt.NDArray[np.int64]) -> list[Array]:
        """Returns copies of the rows at `places`, one array [*places.shape, ...] per field.

        `places` may have any shape; each place is in [0, len(self)).
        """
        return [array.take(places, axis=0) for array in self._arrays.values()]

    def state_dict(self) -> StateTree:
        """Returns the stored rows in the order of places, and the number of rows ever written."""
        filled = len(self)
        rows: dict[str, object] = {name: array[:filled] for name, array in self._arrays.items()}
        return {"total": self.total, "rows": rows}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the ring from `state`.

        Raises:
            ValueError: If `state` is of a ring with other fields or another capacity.
        """
        total, rows = int(state["total"]), state["rows"]
        filled = min(total, self.capacity)
        shapes = {name: (filled, *array.shape[1:]) for name, array in self._arrays.items()}
        given = {name: tuple(row.shape) for name, row in rows.items()}
        if given != shapes:
            raise ValueError(
                f"the stored memory does not fit this one: expected {shapes}, got {given}"
            )
        for name, array in self._arrays.items():
            array[:filled] = rows[name]
        self.total = total
