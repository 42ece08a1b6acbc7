"""Converts stored observations to those of Stable-Baselines3.

Stored observations are arrays, or flat vectors for composite spaces. Stable-Baselines3 reads
arrays, or a dict of arrays.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import Space, spaces
from gymnasium.spaces.utils import flatdim

from workers.core.types import Array
from workers.rl.envs.space_arrays import Flattener


class Observations:
    """Converts stored observations to those that the algorithm's policy reads.

    A flattened `Dict` becomes a dict if the policy has several inputs; for other policies it
    remains the flat vector of `workers.rl.envs.space_arrays`.

    Args:
        space: Observation space that the environment declares.
        has_several_inputs: Whether the policy has several inputs (`MultiInputPolicy`).
    """

    def __init__(self, space: Space[object], *, has_several_inputs: bool) -> None:
        self._leaves: Mapping[str, Space[object]] | None = None
        self.space = space
        """Space of the converted observations."""
        if isinstance(space, spaces.Dict) and has_several_inputs:
            self._leaves = space.spaces
        elif isinstance(space, spaces.Dict | spaces.Tuple):
            self.space = Flattener(space).space()

    def __call__(self, rows: Array) -> Any:
        """Returns a copy of observations [B, ...] for the policy."""
        if self._leaves is None:
            return rows.copy()
        return {key: part.astype(self._leaves[key].dtype) for key, part in self.split(rows).items()}

    def split(self, rows: Any) -> Any:
        """Returns arrays or tensors [B, ...] by their keys in the `Dict`.

        Returns `rows` unchanged if the policy has one input.
        """
        if self._leaves is None:
            return rows
        parts, begin = {}, 0
        for key, leaf in self._leaves.items():
            end = begin + flatdim(leaf)
            parts[key] = _decode_leaf(rows[:, begin:end], leaf)
            begin = end
        return parts

    def observation_at(self, observations: Any, index: int) -> object:
        """Returns the observation of the environment at `index` from converted ones [B, ...]."""
        return (
            observations[index]
            if self._leaves is None
            else {key: part[index] for key, part in observations.items()}
        )


def _decode_leaf(rows: Any, leaf: Space[object]) -> object:
    """Converts one-hot vectors and flattened boxes [B, n] to elements of `leaf`."""
    match leaf:
        case spaces.Discrete():
            return rows.argmax(-1) + int(leaf.start)
        case spaces.MultiDiscrete():
            ends = np.cumsum(leaf.nvec.reshape(-1)).tolist()
            found = [
                rows[:, begin:end].argmax(-1)
                for begin, end in zip([0, *ends[:-1]], ends, strict=True)
            ]
            return np.stack(found, 1) if isinstance(rows, np.ndarray) else torch.stack(found, 1)
    return rows.reshape(rows.shape[0], *(leaf.shape or ()))
