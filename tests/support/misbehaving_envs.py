"""Environments that violate the Gymnasium API, have unusual spaces, or save their own state."""

import os
import signal
from typing import Any

import gymnasium as gym
import numpy as np


class Walk(gym.Env[np.ndarray, Any]):
    """An environment that counts its steps and returns the action as reward.

    An episode ends after `length` steps, or never.
    """

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(
        self, length: int = 0, *, random_length: bool = False, nan_reward: bool = False
    ) -> None:
        self.length = length
        self.nan_reward = nan_reward
        self.random_length = random_length
        self.steps = 0
        self.start = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.start = float(self.np_random.random())
        if self.random_length:
            self.length = int(self.np_random.integers(2, 12))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        reward = float("nan") if self.nan_reward else float(action)
        return self._observation(), reward, self.steps == self.length, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.start, self.steps], np.float32)


class SuccessEnv(Walk):
    """An environment that reports success for every episode of more than six steps."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, _ = super().step(action)
        info = {"is_success": self.steps > 6} if terminated else {}
        return observation, reward, terminated, truncated, info


class UnseededEnv(Walk):
    """An environment that uses an unseeded random generator."""

    _source = np.random.default_rng()

    def _observation(self) -> np.ndarray:
        return np.array([self._source.random(), self.steps], np.float32)


class SelfSavingEnv(UnseededEnv):
    """An environment that is not repeatable, but can save and restore its state."""

    def snapshot_state(self) -> dict[str, Any]:
        return {"steps": self.steps, "start": self.start}

    def restore_state(self, state: dict[str, Any]) -> None:
        self.steps, self.start = state["steps"], state["start"]


class RaisingEnv(Walk):
    """An environment that raises in its third step."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.steps == 2:
            raise ValueError("the robot fell over")
        return super().step(action)


class HangingEnv(Walk):
    """An environment that hangs in its third step."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        while self.steps == 2:
            signal.pause()
        return super().step(action)


class FullDiskEnv(Walk):
    """An environment that raises the error of a full disk."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        raise OSError(28, "No space left on device")


class FailingEnv(Walk):
    """An environment that raises in its third step, then has no disk space, then is killed."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.steps < 2:
            return super().step(action)
        self.failures += 1
        if self.failures == 1:
            raise ValueError("the robot fell over")
        if self.failures == 2:
            raise OSError(28, "No space left on device")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("not killed")


class ExitingEnv(Walk):
    """An environment that calls `sys.exit`."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        raise SystemExit(0)


class DyingEnv(Walk):
    """An environment whose process is killed in its third step."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.steps == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class RaggedInfoEnv(Walk):
    """An environment whose infos hold arrays whose lengths differ between copies and steps."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, _ = super().step(action)
        info = {"path": np.zeros(1 + self.steps + int(10 * self.start)), "is_success": True}
        return observation, reward, terminated, truncated, info


class ReturningEnv(gym.Env[Any, Any]):
    """An environment that returns what it was made with.

    Args:
        space: Its observation space.
        observation: What `step` returns as the observation.
        first: What `reset` returns; `None` returns a sample of the space and an empty info.
        result: What `step` returns in place of reward, terminated, truncated and info.
        good_steps: Steps of each episode that return a sample, reward 0 and no end before.
    """

    action_space = gym.spaces.Discrete(2)

    def __init__(
        self,
        space: gym.spaces.Space[Any],
        observation: Any = None,
        *,
        first: Any = None,
        result: Any = (0.0, False, False, {}),
        good_steps: int = 0,
    ) -> None:
        self.observation_space = space
        self.observation = observation
        self.first = first
        self.result = result
        self.good_steps = good_steps
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return (self.observation_space.sample(), {}) if self.first is None else self.first

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps <= self.good_steps:
            return self.observation_space.sample(), 0.0, False, False, {}
        return (self.observation, *self.result)


class ActionChangingEnv(gym.Env[np.ndarray, Any]):
    """An environment whose place is the sum of its actions, which it sets to zero afterwards."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float64)

    def __init__(self, space: gym.spaces.Space[Any] | None = None) -> None:
        self.action_space = space or gym.spaces.Box(-1, 1, (2,), np.float32)
        self.place = np.zeros(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = np.zeros(2)
        return self.place.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place = self.place + action
        action[...] = 0
        return self.place.copy(), 0.0, False, False, {}


class NestedSpacesEnv(gym.Env[Any, Any]):
    """An environment with a nested observation space and a composite action space.

    Actions change the random observations.
    """

    observation_space = gym.spaces.Dict(
        {
            "place": gym.spaces.Box(-5.0, 5.0, (2, 2), np.float64),
            "kind": gym.spaces.Discrete(3, start=-1),
            "parts": gym.spaces.Tuple(
                (gym.spaces.MultiBinary(3), gym.spaces.MultiDiscrete([2, 4]))
            ),
        }
    )

    def __init__(self, *, binary: bool = False) -> None:
        self.action_space = (
            gym.spaces.MultiBinary(2) if binary else gym.spaces.MultiDiscrete([3, 2])
        )
        self.taken: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observation(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken = action
        return self._observation(int(action.sum())), float(action[0]), False, False, {}

    def _observation(self, shift: int) -> Any:
        draw = self.np_random.integers
        binary, several = draw(0, 2, 3).astype(np.int8), draw(0, [2, 4])
        return {
            "place": self.np_random.normal(size=(2, 2)) + shift,
            "kind": np.int64(draw(-1, 2)),
            "parts": (binary, several),
        }


class TextEnv(gym.Env[Any, Any]):
    """An environment whose observations contain text."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Tuple((gym.spaces.Text(3),))})
    action_space = gym.spaces.Discrete(2)


def register() -> None:
    """Registers all of these environments; repeated calls have no effect."""
    for kind in (
        Walk,
        SuccessEnv,
        UnseededEnv,
        SelfSavingEnv,
        RaisingEnv,
        HangingEnv,
        FullDiskEnv,
        FailingEnv,
        ExitingEnv,
        DyingEnv,
        RaggedInfoEnv,
        ActionChangingEnv,
        NestedSpacesEnv,
        TextEnv,
    ):
        name = f"Odd{kind.__name__.removesuffix('Env')}-v0"
        if name not in gym.registry:
            gym.register(name, f"{kind.__module__}:{kind.__name__}")


register()
