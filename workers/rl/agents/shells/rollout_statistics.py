"""What a rollout tells about rewards and value function, for the metrics of on-policy agents."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from workers.core.types import Array, StateTree

VALUE_MEAN = "value/mean"
EXPLAINED_VARIANCE = "value/explained_variance"
LARGEST_REWARD = "reward/largest"


class RolloutStatistics:
    """Largest |reward| of all rollouts, and the fit of the value function to the last one.

    The fit is computed only when it is asked for, so a rollout costs one pass over its rewards.
    """

    def __init__(self) -> None:
        self._largest: float | None = None
        self._advantage: Tensor | None = None
        self._target: Tensor | None = None
        self._fit: dict[str, Any] = {}

    def note_rewards(self, rewards: Array) -> None:
        """Takes the rewards of a rollout [T, B] as the agent learns from them, T at least 1."""
        found = float(np.abs(rewards).max())
        # A reward that is not a number compares as false and is left out.
        if self._largest is None or found > self._largest:
            self._largest = found

    def note_values(self, advantage: Tensor, value_target: Tensor) -> None:
        """Takes advantages and value targets of a rollout [...]; they must not be overwritten."""
        self._advantage, self._target = advantage, value_target

    def metrics(self) -> Mapping[str, Any]:
        """Returns `value/mean`, `value/explained_variance` and `reward/largest` by name.

        The explained variance is 1 - Var(target - V) / Var(target), as OpenAI Baselines computes
        it, and 0 where all targets are equal. Numbers of an accelerator stay tensors, since reading
        them would synchronise.
        """
        if self._advantage is not None and self._target is not None:
            self._fit = _measure_fit(self._advantage, self._target)
            self._advantage = self._target = None
        rewards = {} if self._largest is None else {LARGEST_REWARD: self._largest}
        return {**self._fit, **rewards}

    def state_dict(self) -> StateTree:
        """Returns the metrics as numbers."""
        return {name: float(value) for name, value in self.metrics().items()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores what `state_dict` returned; older snapshots hold nothing."""
        self._advantage = self._target = None
        self._fit = {name: value for name, value in state.items() if name != LARGEST_REWARD}
        self._largest = state.get(LARGEST_REWARD)


def _measure_fit(advantage: Tensor, target: Tensor) -> dict[str, Any]:
    if target.is_cpu:
        return _measure_arrays(advantage.numpy().ravel(), target.numpy().ravel())
    return _measure_tensors(advantage, target)


def _measure_arrays(advantage: Array, target: Array) -> dict[str, Any]:
    """Computes the fit in numpy, which takes a quarter of the time for few steps."""
    count = len(target)
    mean, error_mean = target.sum() / count, advantage.sum() / count
    centred, error = target - mean, advantage - error_mean
    spread = float(centred @ centred)
    explained = 1 - float(error @ error) / spread if spread else 0.0
    return {VALUE_MEAN: float(mean - error_mean), EXPLAINED_VARIANCE: explained}


def _measure_tensors(advantage: Tensor, target: Tensor) -> dict[str, Any]:
    """Computes the fit on the device, without waiting for it."""
    spread = target.var(correction=0)
    explained = 1 - advantage.var(correction=0) / spread
    return {
        VALUE_MEAN: (target - advantage).mean(),
        EXPLAINED_VARIANCE: explained.masked_fill(spread == 0, 0.0),
    }
