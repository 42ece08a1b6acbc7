"""Finds parameters that are not finite."""

from collections.abc import Iterable

import torch
from torch import Tensor


def find_non_finite(named: Iterable[tuple[str, Tensor]]) -> str | None:
    """Returns the first tensor that is not finite, such as `q.weight was nan`.

    Args:
        named: Names and tensors; those of integers are always finite.

    Returns:
        Its name and first value that is not finite; `None` if all are finite.
    """
    tensors = [(name, tensor) for name, tensor in named if tensor.is_floating_point()]
    if not tensors:
        return None
    flags = torch.stack([torch.isfinite(tensor).all().cpu() for _, tensor in tensors])
    if flags.all():
        return None
    name, tensor = tensors[int(flags.long().argmin())]
    value = tensor[~torch.isfinite(tensor)].flatten()[0].item()
    return f"{name} was {value}"
