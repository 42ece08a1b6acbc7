"""An environment whose observations are small numbers in bytes: `Bits-v0`."""

from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces

COUNT: Final = 8
STEPS: Final = 10


class Bits(gym.Env[Any, Any]):
    """Shows eight numbers, and rewards what the first one asks for.

    The reward of a step is 1 for the action 0 where the number is in the lower half of its range,
    and for the action 1 where it is not. A continuous action from -1 to 1 gets 1 less its distance
    from -1 or 1, halved.

    Args:
        dtype: Dtype of the numbers.
        form: `box`, or `dict` or `tuple`, which have the numbers in two parts.
        high: Largest number.
        is_continuous: Whether actions are continuous.
    """

    def __init__(
        self,
        dtype: str = "uint8",
        form: str = "box",
        *,
        high: int = 1,
        is_continuous: bool = False,
    ) -> None:
        whole, half = (
            spaces.Box(0, high, (count,), np.dtype(dtype)) for count in (COUNT, COUNT // 2)
        )
        self.observation_space = {
            "box": whole,
            "dict": spaces.Dict({"front": half, "rest": half}),
            "tuple": spaces.Tuple((half, half)),
        }[form]
        self.action_space = spaces.Box(-1, 1, (1,)) if is_continuous else spaces.Discrete(2)
        self._dtype, self._form, self._high = dtype, form, high
        self._is_continuous = is_continuous

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        is_upper = bool(self._numbers[0] > self._high / 2)
        distance = (
            abs(float(action[0]) - (2 * is_upper - 1)) / 2
            if self._is_continuous
            else float(action != is_upper)
        )
        self._steps += 1
        return self._show(), 1 - distance, self._steps == STEPS, False, {}

    def _show(self) -> Any:
        self._numbers = self.np_random.integers(0, self._high + 1, COUNT).astype(self._dtype)
        front, rest = np.split(self._numbers, 2)
        return {
            "box": self._numbers,
            "dict": {"front": front, "rest": rest},
            "tuple": (front, rest),
        }[self._form]


if "Bits-v0" not in gym.registry:
    gym.register("Bits-v0", f"{__name__}:Bits", max_episode_steps=STEPS)
