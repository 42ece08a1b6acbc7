"""A view of a ring buffer as the stream of rows that were written into it.

A memory is stored as such a stream, so that each snapshot adds only the new rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from workers.core.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class RowStream(Mapping[str, Array]):
    """Rows numbered in order of writing; row i is stored at index i % room of the ring.

    A stored row is not changed until it is overwritten.

    As a mapping it holds one array per field with the stored rows, in the order of the ring.
    Reading a snapshot returns a mapping of the same content.
    """

    columns: Mapping[str, Array]
    """The ring, one array [room, ...] per field."""
    end: int
    """Number of rows ever written, overwritten rows included."""

    @property
    def room(self) -> int:
        """Capacity of the ring in rows."""
        return len(next(iter(self.columns.values())))

    @property
    def first(self) -> int:
        """Number of the oldest row that is still stored."""
        return max(0, self.end - self.room)

    def read(self, begin: int, end: int) -> dict[str, Array]:
        """Returns the rows [begin, end) in order of writing, one array per field.

        An array has the shape [end - begin, ...].

        Raises:
            ValueError: If not all of these rows are stored.
        """
        if not self.first <= begin <= end <= self.end:
            raise ValueError(
                f"rows {begin} to {end} are requested, {self.first} to {self.end} are stored"
            )
        places = np.arange(begin, end) % self.room
        return {name: column.take(places, axis=0) for name, column in self.columns.items()}

    def __getitem__(self, name: str) -> Array:
        """Returns a view of the stored rows of a field, in the order of the ring."""
        return self.columns[name][: self.end - self.first]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)
