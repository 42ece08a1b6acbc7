"""An environment whose observations are bits: `Bits-v0`."""

from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces

COUNT: Final = 8
STEPS: Final = 10


class Bits(gym.Env[Any, Any]):
    """Shows bits, and rewards the action that equals the first one.

    Args:
        dtype: Dtype of the bits.
        form: `box`, or `dict` or `tuple`, which have the bits in two parts.
    """

    def __init__(self, dtype: str = "uint8", form: str = "box") -> None:
        whole, half = (spaces.Box(0, 1, (count,), np.dtype(dtype)) for count in (COUNT, COUNT // 2))
        self.observation_space = {
            "box": whole,
            "dict": spaces.Dict({"front": half, "rest": half}),
            "tuple": spaces.Tuple((half, half)),
        }[form]
        self.action_space = spaces.Discrete(2)
        self._dtype, self._form = dtype, form

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(action == self._bits[0])
        self._steps += 1
        return self._show(), reward, self._steps == STEPS, False, {}

    def _show(self) -> Any:
        self._bits = self.np_random.integers(0, 2, COUNT).astype(self._dtype)
        front, rest = np.split(self._bits, 2)
        return {
            "box": self._bits,
            "dict": {"front": front, "rest": rest},
            "tuple": (front, rest),
        }[self._form]


if "Bits-v0" not in gym.registry:
    gym.register("Bits-v0", f"{__name__}:Bits")
