"""A replay ring: the newest transitions in preallocated arrays.

Owns storage, not the choice of what is sampled.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree

Fields = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
"""Shape and dtype of one row by field name."""


class RowRing:
    """Keeps the last `capacity` rows of some fields.

    Row number i of the whole history lies at place i % capacity.

    Memory is reserved at once and used as it fills.

    Args:
        capacity: Most rows kept.
        fields: What a row holds.
    """

    def __init__(self, capacity: int, fields: Fields) -> None:
        self.capacity = capacity
        self._arrays = {
            name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in fields.items()
        }
        self.total = 0
        """Rows ever written."""

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def extend(self, rows: Sequence[Array]) -> None:
        """Writes N rows in order; of more than `capacity`, the last ones.

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

        `places` has any shape; each place lies in [0, len).
        """
        return [array.take(places, axis=0) for array in self._arrays.values()]

    def state_dict(self) -> StateTree:
        """Returns the rows by place, and how many were ever written."""
        filled = len(self)
        rows: dict[str, object] = {name: array[:filled] for name, array in self._arrays.items()}
        return {"total": self.total, "rows": rows}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the ring to a captured state.

        Raises:
            ValueError: If the state is of a ring with other fields or another capacity.
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
