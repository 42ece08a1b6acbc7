"""A rollout buffer: the transitions of one on-policy iteration, time-major."""

from collections.abc import Mapping, Sequence

import numpy as np

from workers.core.types import Array, StateTree
from workers.rl.memory.ring import Fields


class Rollout:
    """Stores consecutive vector steps until `clear`. Shapes: T vector steps, B environments.

    Args:
        vector_steps: Vector steps for which arrays are allocated; longer rollouts enlarge them.
        num_envs: Number of environments, B.
        fields: Shape and dtype of one entry by field name.
    """

    def __init__(self, vector_steps: int, num_envs: int, fields: Fields) -> None:
        self._num_envs = num_envs
        self._arrays = {
            name: np.zeros((vector_steps, num_envs, *shape), dtype)
            for name, (shape, dtype) in fields.items()
        }
        self._steps = vector_steps
        self._filled = 0

    @property
    def capacity(self) -> int:
        """Transitions for which arrays are allocated."""
        return self._steps * self._num_envs

    def __len__(self) -> int:
        return self._filled * self._num_envs

    def extend(self, rows: Sequence[Array]) -> None:
        """Appends T vector steps.

        Args:
            rows: One array [T, B, ...] per field, in the order of the fields; converted to the
                dtype of the field.
        """
        begin, end = self._filled, self._filled + len(rows[0])
        if end > self._steps:
            self._grow(max(end, 2 * self._steps))
        for array, row in zip(self._arrays.values(), rows, strict=True):
            array[begin:end] = row
        self._filled = end

    def contents(self) -> Mapping[str, Array]:
        """Returns views [T, B, ...] by field name, valid until the next `extend`."""
        return {name: array[: self._filled] for name, array in self._arrays.items()}

    def clear(self) -> None:
        """Removes all transitions; the arrays stay allocated."""
        self._filled = 0

    def state_dict(self) -> StateTree:
        """Returns the rows stored since the last `clear`."""
        return {"rows": dict(self.contents())}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the rows from `state`.

        Raises:
            ValueError: If `state` is of a rollout with other fields or another number of
                environments.
        """
        rows = state["rows"]
        shapes = {name: array.shape[1:] for name, array in self._arrays.items()}
        given = {name: tuple(row.shape[1:]) for name, row in rows.items()}
        if given != shapes:
            raise ValueError(
                f"the stored rollout does not fit this one: expected {shapes}, got {given}"
            )
        self.clear()
        self.extend([rows[name] for name in self._arrays])

    def _grow(self, vector_steps: int) -> None:
        for name, array in self._arrays.items():
            larger = np.zeros((vector_steps, *array.shape[1:]), array.dtype)
            larger[: self._filled] = array[: self._filled]
            self._arrays[name] = larger
        self._steps = vector_steps
