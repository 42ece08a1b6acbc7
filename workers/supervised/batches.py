"""Batches of features and labels for supervised models, and their collector.

An input function takes no argument and returns an iterable of pairs `(features, labels)`, finite or
not. Features and labels are arrays or tensors [N, ...], or dicts of these. If the function returns
one pair in place of an iterable, that batch is repeated without end. One batch counts as one
env_step of the engine's clock, so that counters and limits work as in reinforcement learning.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeGuard, cast

import numpy as np
import torch

from workers.core.errors import InputExhaustedError
from workers.core.protocols import Stateful
from workers.core.types import CollectPlan, Experience, RestoreReport, StateTree

Batches = Iterable[tuple[Any, Any]]
InputFn = Callable[[], Batches | tuple[Any, Any]]

_NO_FLAGS = np.zeros((1, 1), np.bool_)
_NO_NUMBERS = np.zeros((1, 1), np.float64)


@dataclass(slots=True)
class SupervisedBatch(Experience):
    """One batch of features and labels; the inherited arrays of an experience are unused."""

    features: object = None
    """A tensor [N, ...] on the CPU, or a dict of tensors."""
    labels: object = None
    """A tensor [N, ...] on the CPU, a dict of tensors, or `None`."""


class BatchCollector:
    """Draws batches for the engine.

    To restore its position, an input with `state_dict` and `load_state_dict` is restored from its
    state; from any other input, the earlier batches are drawn again and discarded.

    Args:
        input_fn: Input function; not called before the first batch is drawn or a state is restored.
    """

    num_envs = 1

    def __init__(self, input_fn: InputFn) -> None:
        self._input_fn = input_fn
        self._source: Any = None
        self._iterator: Iterator[tuple[object, object]] | None = None
        self._drawn = 0

    def collect(self, plan: CollectPlan) -> SupervisedBatch:
        """Returns the next batch; counts one env_step.

        Raises:
            InputExhaustedError: If a finite input has no more batches.
        """
        del plan
        try:
            features, labels = next(self._open())
        except StopIteration:
            raise InputExhaustedError(f"the input ended after {self._drawn} batches") from None
        self._drawn += 1
        empty = (_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_FLAGS, _NO_FLAGS, _NO_NUMBERS)
        return SupervisedBatch(
            *empty, env_steps=1, features=to_tensors(features), labels=to_tensors(labels)
        )

    def state_dict(self) -> StateTree:
        """Returns the number of batches drawn, and the state of the input if it has one."""
        own = (
            self._source.state_dict()
            if self._iterator is not None and isinstance(self._source, Stateful)
            else None
        )
        return {"drawn": self._drawn, "input": own}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the position in the input, without a report; see `restore`."""
        self.restore(state)

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the position in the input.

        Raises:
            InputExhaustedError: If the input has fewer batches than were drawn before.
        """
        self._drawn, self._iterator = int(state["drawn"]), None
        if state["input"] is not None:
            self._source = as_batches(self._input_fn())
            self._source.load_state_dict(state["input"])
            self._iterator = iter(self._source)
            return RestoreReport()
        if not self._drawn:
            return RestoreReport()
        iterator = self._open()
        for drawn in range(self._drawn):
            if next(iterator, None) is None:
                raise InputExhaustedError(
                    f"the input ended after {drawn} batches, "
                    f"{self._drawn} had been drawn from it before"
                )
        return RestoreReport()

    def _open(self) -> Iterator[tuple[object, object]]:
        if self._iterator is None:
            self._source = as_batches(self._input_fn())
            self._iterator = iter(self._source)
        return self._iterator


def as_batches(given: Batches | tuple[object, object]) -> Batches:
    """Returns an iterable of batches from the result of an input function."""
    return repeat(given) if is_one_batch(given) else cast("Batches", given)


def is_one_batch(given: Batches | tuple[object, object]) -> TypeGuard[tuple[object, object]]:
    """Returns whether an input function returned one (features, labels) pair, not an iterable."""
    return isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], tuple)


def to_tensors(value: object, device: torch.device | None = None) -> Any:
    """Converts an array, or each array of a dict, to a tensor; `None` stays `None`."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {key: to_tensors(one, device) for key, one in value.items()}
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    return tensor if device is None else tensor.to(device)


def rows_in(value: Any) -> int:
    """Returns the number of rows, N, of a batch's features."""
    return rows_in(next(iter(value.values()))) if isinstance(value, dict) else len(value)
