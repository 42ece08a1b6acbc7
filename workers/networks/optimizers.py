"""Optimisers of torch that an object of somebody else's making holds."""

from collections.abc import Iterator
from typing import Any

import torch


def optimizers_of(holder: Any) -> Iterator[torch.optim.Optimizer]:
    """Yields those among an object's attributes, and those that an attribute of it wraps as its own attribute `optimizer`."""
    for value in tuple(getattr(holder, "__dict__", {}).values()):
        inner = value if isinstance(value, torch.optim.Optimizer) else getattr(value, "optimizer", None)
        if isinstance(inner, torch.optim.Optimizer):
            yield inner
