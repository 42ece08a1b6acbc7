"""What a rollout tells about rewards and value function, for the metrics of on-policy agents."""

from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor

from workers.core.types import Array, StateTree
from workers.rl.memory.largest_reward import find_largest_magnitude

VALUE_MEAN = "value/mean"
EXPLAINED_VARIANCE = "value/explained_variance"
LARGEST_REWARD = "reward/largest"
_FEW: Final = 64
"""Steps up to which lists take less time than arrays."""


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
        self._largest = max(self._largest or 0.0, find_largest_magnitude(rewards))

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
        """Restores what `state_dict` returned."""
        self._advantage = self._target = None
        self._fit = {name: value for name, value in state.items() if name != LARGEST_REWARD}
        self._largest = state.get(LARGEST_REWARD)


class ValueFit:
    """The fit of the value function to the returns R of several short rollouts.

    A few steps of one environment are too short for a ratio of variances, so moments of all
    rollouts of a report are summed.
    """

    def __init__(self) -> None:
        self._return_mean = self._return_square = 0.0
        self._rollouts = 0

    def note(self, returned: list[float]) -> None:
        """Adds the returns R of a rollout, of at least one step."""
        count = len(returned)
        self._return_mean += sum(returned) / count
        self._return_square += sum([one * one for one in returned]) / count
        self._rollouts += 1

    def explained_variance(self, value_mean: float, squared_error: float) -> float:
        """Returns 1 - Var(R - V) / Var(R) of the rollouts; 0 where all R are equal.

        Args:
            value_mean: Mean of V over the same rollouts.
            squared_error: Mean of (R - V)^2 over them.
        """
        mean = self._return_mean / self._rollouts
        spread = self._return_square / self._rollouts - mean**2
        if not spread > 0:
            return 0.0
        return 1 - (squared_error - (mean - value_mean) ** 2) / spread


def _measure_fit(advantage: Tensor, target: Tensor) -> dict[str, Any]:
    if target.is_cpu:
        if target.numel() <= _FEW:
            return _measure_lists(advantage.ravel().tolist(), target.ravel().tolist())
        return _measure_arrays(advantage.numpy().ravel(), target.numpy().ravel())
    return _measure_tensors(advantage, target)


def _measure_lists(advantage: list[float], target: list[float]) -> dict[str, Any]:
    """Computes the fit of few steps."""
    count = len(target)
    mean, error_mean = sum(target) / count, sum(advantage) / count
    spread = sum([(one - mean) ** 2 for one in target])
    explained = 1 - sum([(one - error_mean) ** 2 for one in advantage]) / spread if spread else 0.0
    return {VALUE_MEAN: mean - error_mean, EXPLAINED_VARIANCE: explained}


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
