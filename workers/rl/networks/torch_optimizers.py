"""Finds the torch optimisers among the attributes of an external object.

torch is not imported: if it is not loaded yet, the object has no optimiser.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def optimizers_of(holder: object) -> Iterator[torch.optim.Optimizer]:
    """Yields the torch optimisers among an object's attributes.

    An attribute may also be a wrapper that holds the optimiser in its attribute `optimizer`.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for value in tuple(getattr(holder, "__dict__", {}).values()):
        inner = (
            value if isinstance(value, torch.optim.Optimizer) else getattr(value, "optimizer", None)
        )
        if isinstance(inner, torch.optim.Optimizer):
            yield inner
