"""Algorithms, policies and environments for tests of the garage-style trainer.

Spawned processes import this module; torch, which takes seconds, is in `torch_garage_kit`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from workers.core.recipes import rebuildable
from workers.entrypoints.trainer_parts.samplers import LocalSampler


@rebuildable
class CountingEnv(gym.Env[Any, Any]):
    """Episodes of `length` steps that terminate.

    The observation is the number of the step; the reward is `reward`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own

    def __init__(
        self, length: int = 5, reward: float = 1.0, render_mode: str | None = "rgb_array"
    ) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length, self.reward, self.render_mode = length, reward, render_mode
        self.at = 0
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        self.resets += 1
        return self._observation(), {"reset": self.resets}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        info = {"odd": 1.0} if self.at % 2 else {}
        return self._observation(), self.reward, self.at >= self.length, False, info

    def render(self) -> Any:
        return np.full((16, 16, 3), self.at, np.uint8)

    def _observation(self) -> Any:
        return np.array([self.at, self.length], np.float32)


class GarageSpec:
    """Has the attributes of `garage.EnvSpec`."""

    def __init__(
        self, observation_space: Any, action_space: Any, max_episode_length: int | None = None
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.max_episode_length = max_episode_length


@rebuildable
class GarageEnv(CountingEnv):
    """A `CountingEnv` whose `spec` is garage's."""

    def __init__(self, length: int = 5, max_episode_length: int | None = None) -> None:
        super().__init__(length)
        self.spec: Any = GarageSpec(self.observation_space, self.action_space, max_episode_length)


@rebuildable
class ConstantPolicy:
    """A policy with one parameter, which is its action."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def get_action(self, observation: Any) -> tuple[int, dict[str, Any]]:
        return int(self.value) % 2, {"value": self.value}

    def get_param_values(self) -> dict[str, float]:
        return {"value": self.value}

    def set_param_values(self, values: dict[str, float]) -> None:
        self.value = values["value"]


@rebuildable
class CountingAlgo:
    """An algorithm that adds 1 to the policy's parameter in each epoch.

    Args:
        env: Environment to sample; `None` for an algorithm without a sampler.
        body: Function called in each epoch, after collecting and learning.
    """

    def __init__(self, env: Any = None, length: int | None = None, n_workers: int = 1) -> None:
        self.policy = ConstantPolicy()
        self.max_episode_length = length or 50
        self.seen: list[int] = []
        self.returned: Any = None
        self._sampler = (
            None
            if env is None
            else LocalSampler(self.policy, env, length, n_workers=n_workers, seed=5)
        )
        self.body: Callable[[Any, int], Any] = lambda trainer, epoch: None

    def train(self, trainer: Any) -> Any:
        for epoch in trainer.step_epochs():
            if self._sampler is not None:
                trainer.step_episode = trainer.obtain_samples(trainer.step_itr)
            self.policy.value += 1
            self.seen.append(epoch)
            trainer.log("Value", self.policy.value)
            trainer.step_itr += 1
            if self.body(trainer, epoch) == "break":
                break
        return self.returned


@rebuildable
class SamplerArgumentAlgo(CountingAlgo):
    """An algorithm that takes policy and sampler as arguments, as garage's algorithms do."""

    def __init__(self, policy: ConstantPolicy, sampler: Any) -> None:
        super().__init__()
        self.policy = policy
        self._sampler = sampler


GivenSamplerAlgo = SamplerArgumentAlgo
"""The former name, which stored snapshots in `tests/assets` hold."""


def list_snapshot_names(directory: Path) -> list[str]:
    """Returns the names of the snapshots in a directory, in alphabetical order."""
    return sorted(path.name for path in directory.iterdir() if (path / "MANIFEST.json").is_file())


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields path and value of each leaf of a state tree."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(item, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from flatten(item, f"{path}/{index}")
    else:
        yield path, value
