"""Input of a supervised model: batches of features and labels, as the engine collects them.

An input function takes no argument and returns an iterable of `(features, labels)`, finite or not;
each of the two is an array or tensor [N, ...], or a dict of them. A pair in place of an iterable is
one batch that comes again for ever. One batch counts as one env_step of the engine's clock, so that
every counter, bound and record means the same for supervised training.
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
    """One batch. The arrays of an experience hold nothing."""

    features: object = None
    """Tensors [N, ...] on the CPU, one or a dict."""
    labels: object = None
    """The same."""


class BatchCollector:
    """Draws batches for the engine.

    A resume restores an input that has `state_dict` and `load_state_dict`; from any other one it
    draws the earlier batches again.

    Args:
        input_fn: Called with the first batch or the first state, not before.
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
            InputExhaustedError: If a finite input has no more.
        """
        del plan
        try:
            features, labels = next(self._open())
        except StopIteration:
            raise InputExhaustedError(f"the input ended after {self._drawn} batches") from None
        self._drawn += 1
        empty = (_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_FLAGS, _NO_FLAGS, _NO_NUMBERS)
        return SupervisedBatch(
            *empty, env_steps=1, features=tensors(features), labels=tensors(labels)
        )

    def state_dict(self) -> StateTree:
        """Returns how many batches were drawn, and the input's own state."""
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
            InputExhaustedError: If the input ends before it, so that it is not the same one.
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
    """Returns what an input function returned as an iterable of batches."""
    return repeat(given) if is_one_batch(given) else cast("Batches", given)


def is_one_batch(given: Batches | tuple[object, object]) -> TypeGuard[tuple[object, object]]:
    """Returns whether an input function returned one (features, labels) pair, not an iterable."""
    return isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], tuple)


def tensors(value: object, device: torch.device | None = None) -> Any:
    """Returns arrays, or dicts of them, as tensors; `None` stays."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {key: tensors(one, device) for key, one in value.items()}
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    return tensor if device is None else tensor.to(device)


def rows_in(value: Any) -> int:
    """Returns N of a batch's features."""
    return rows_in(next(iter(value.values()))) if isinstance(value, dict) else len(value)
