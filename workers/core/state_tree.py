"""Serialises state trees for other processes without torch."""

from typing import Any

import numpy as np


def tensors_to_arrays(tree: Any) -> Any:
    """Replaces each tensor of a tree by an array, marked as `{"$torch": array}`.

    The result can be sent to another process without torch.
    """
    if isinstance(tree, dict):
        return {key: tensors_to_arrays(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [tensors_to_arrays(item) for item in tree]
    return (
        {"$torch": tree.detach().cpu().numpy()}
        if type(tree).__module__.split(".")[0] == "torch"
        else tree
    )


def arrays_to_tensors(tree: object) -> Any:
    """Inverse of `tensors_to_arrays`; the tensors are on the CPU."""
    if isinstance(tree, list):
        return [arrays_to_tensors(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return (
        _tensor(tree["$torch"])
        if "$torch" in tree
        else {key: arrays_to_tensors(item) for key, item in tree.items()}
    )


def _tensor(array: object) -> object:
    import torch  # noqa: PLC0415 - needed only for trees with tensors

    return torch.from_numpy(np.array(array))
