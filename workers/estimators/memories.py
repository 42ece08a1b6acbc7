"""Memories of an agent, which store transitions as rows of named values."""

from collections.abc import Mapping

import numpy as np

from workers.core.rng import derive_generator, generator_state, load_generator_state
from workers.core.types import Array, StateTree
from workers.rl.memory.ring import RowRing


class Memory:
    """Keeps the newest rows and samples them uniformly, without replacement.

    Args:
        size: Capacity in rows; a new row replaces the oldest one.
        batch_size: Rows of a sample.

    Raises:
        ValueError: If `batch_size` is less than 1 or greater than `size`.
    """

    def __init__(self, size: int = 1000, batch_size: int = 32) -> None:
        if not 1 <= batch_size <= size:
            raise ValueError(
                f"batch_size must lie between 1 and size, not {batch_size} with a size of {size}"
            )
        self.size = size
        self.batch_size = batch_size
        self._keys: tuple[str, ...] = ()
        self._rows: RowRing | None = None
        self._generator = derive_generator(0, "memory/sample")

    @property
    def capacity(self) -> int:
        """Capacity in rows."""
        return self.size

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    def seed(self, seed: int) -> None:
        """Seeds the generator that chooses the samples."""
        self._generator = derive_generator(seed, "memory/sample")

    def step(self, **row: object) -> None:
        """Appends a row; its values are copied.

        Raises:
            KeyError: If the keys differ from those of the first row.
        """
        if not self._keys:
            self._keys = tuple(row)
        elif set(row) != set(self._keys):
            raise KeyError(
                f"a row has the keys {sorted(row)}, those before it had {sorted(self._keys)}"
            )
        values = {key: np.asarray(row[key])[np.newaxis] for key in self._keys}
        self._ring_for(values).extend(list(values.values()))

    def can_sample(self, n: int | None = None) -> bool:
        """Returns whether `n` rows (`None`: the stored rows) are at least `batch_size`."""
        return (len(self) if n is None else n) >= self.batch_size

    def sample(self) -> dict[str, Array]:
        """Returns `batch_size` rows as one array [batch_size, ...] per key.

        Raises:
            ValueError: If too few rows are stored.
        """
        self._check_enough()
        return self._take(self._generator.choice(len(self), self.batch_size, replace=False))

    def get_by_index(self, index: int) -> dict[str, Array] | None:
        """Returns a row, 0 being the oldest and -1 the newest; `None` if the memory is empty.

        Raises:
            IndexError: If the index is out of range.
        """
        count = len(self)
        if not count:
            return None
        if not -count <= index < count:
            raise IndexError(f"the memory holds {count} rows, there is no row {index}")
        return {key: column[0] for key, column in self._take(np.array([index % count])).items()}

    def clear(self) -> None:
        """Removes all rows; the keys are kept."""
        self._rows = None

    def state_dict(self) -> StateTree:
        """Returns the rows, the oldest first, and the generator."""
        rows = self._take(np.arange(len(self))) if len(self) else {}
        return {
            "keys": list(self._keys),
            "rows": rows,
            "generator": generator_state(self._generator),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the rows and the generator.

        Raises:
            ValueError: If the state holds more rows than the capacity.
        """
        self.clear()
        self._keys, rows = tuple(state["keys"]), state["rows"]
        if rows:
            columns = {key: rows[key] for key in self._keys}
            self._ring_for(columns).extend(list(columns.values()))
        load_generator_state(self._generator, state["generator"])

    def _ring_for(self, columns: Mapping[str, Array]) -> RowRing:
        """Returns the ring to which the rows of `columns` can be appended."""
        count = len(next(iter(columns.values())))
        if count > self.size:
            raise ValueError(
                f"the stored memory holds {count} rows, this one keeps {self.size}: "
                "make it at least as large"
            )
        if self._rows is None:
            self._rows = self._new_ring(self.size, columns)
        return self._rows

    def _new_ring(self, capacity: int, columns: Mapping[str, Array]) -> RowRing:
        return RowRing(
            capacity, {key: (column.shape[1:], column.dtype) for key, column in columns.items()}
        )

    def _check_enough(self) -> None:
        if not self.can_sample():
            raise ValueError(
                f"{len(self)} rows are stored, a batch needs {self.batch_size}: "
                "check can_sample() first"
            )

    def _take(self, indices: object) -> dict[str, Array]:
        """Returns the rows with the given indices, 0 being the oldest."""
        ring = self._rows
        if ring is None:
            return {}
        places = (np.asarray(indices) + ring.total - len(ring)) % ring.capacity
        return dict(zip(self._keys, ring.take(places), strict=True))


class BatchMemory(Memory):
    """Keeps all rows in their order until `sample` returns and removes them.

    The capacity grows, so that no row of an episode is dropped when there are more than
    `batch_size` rows.

    Args:
        batch_size: Least number of rows that can be sampled.
    """

    def __init__(self, batch_size: int = 5000) -> None:
        super().__init__(batch_size, batch_size)

    def sample(self) -> dict[str, Array]:
        """Returns all rows in order as one array per key, and removes them.

        Raises:
            ValueError: If too few rows are stored.
        """
        self._check_enough()
        batch = self._take(np.arange(len(self)))
        self.clear()
        return batch

    def _ring_for(self, columns: Mapping[str, Array]) -> RowRing:
        needed = len(self) + len(next(iter(columns.values())))
        if self._rows is None or needed > self._rows.capacity:
            larger = self._new_ring(max(2 * needed, self.batch_size), columns)
            if len(self):
                larger.extend(list(self._take(np.arange(len(self))).values()))
            self._rows = larger
        return self._rows


MEMORIES: Mapping[str, type[Memory]] = {"memory": Memory, "batch_memory": BatchMemory}
"""Memory classes by name."""
