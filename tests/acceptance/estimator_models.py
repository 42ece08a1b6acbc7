"""Small models, inputs, environments and memories for the tests of estimators and agents."""

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from workers.estimators.memories import Memory
from workers.supervised.modes import Modes
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import explore, get_module, minimize

QUIET = {"save_summary_steps": 0, "log_step_count_steps": 0}


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def slow_sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.001, momentum=0.9)


def regression(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
    """Model function of the linear model y = a x + b."""
    network = get_module("line", lambda: nn.Linear(1, 1))
    predicted = network(features["x"])
    if not mode.has_labels:
        return EstimatorSpec(mode, {"results": predicted})
    loss = (predicted - labels).square().mean()
    train_op = minimize(loss, sgd) if mode is Modes.TRAIN else None
    return EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        metrics={"error": (predicted - labels).detach().abs().mean()},
    )


def policy(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
    """Model function with values of two actions, learnt from rewards; explores half of the time."""
    network = get_module("values", lambda: nn.Linear(features["state"].flatten(1).shape[1], 2))
    values = network(features["state"].float().flatten(1))
    if not mode.has_labels:
        return EstimatorSpec(mode, {"results": explore("half", _half, values.argmax(1), actions=2)})
    taken = values.gather(1, labels["action"].long().view(-1, 1)).squeeze(1)
    loss = (taken - labels["reward"].float()).square().mean()
    return EstimatorSpec(
        mode, loss=loss, train_op=minimize(loss, slow_sgd) if mode is Modes.TRAIN else None
    )


def _half() -> Any:
    from workers.supervised.explorations import constant

    return constant(0.5)


class CountingInputs:
    """Input functions that count their calls and the batches drawn from them."""

    def __init__(self, batches: int | None = None, rows: int = 4) -> None:
        self.calls = 0
        self.drawn = 0
        self._batches, self._rows = batches, rows

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        self.calls += 1
        return self._draw()

    def _draw(self) -> Iterator[tuple[Any, Any]]:
        generator = np.random.default_rng(7)
        index = 0
        while self._batches is None or index < self._batches:
            x = generator.standard_normal((self._rows, 1)).astype(np.float32)
            self.drawn += 1
            index += 1
            yield {"x": x}, 2 * x + 1


class ScriptedEnv(gym.Env[Any, Any]):
    """An environment whose episodes all have the same rewards.

    The observation is the step and the last action. It counts the calls that it receives.
    """

    def __init__(
        self, rewards: Sequence[float] = (1.0,) * 10, trace: list[Any] | None = None
    ) -> None:
        self.observation_space = gym.spaces.Box(-100.0, 100.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.rewards = tuple(rewards)
        self.trace: list[Any] = [] if trace is None else trace
        self.resets = self.steps = self.closes = 0
        self.at = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        self.trace.append("reset")
        self.at = 0
        return np.array([0, -1], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.trace.append("step")
        reward = self.rewards[self.at]
        self.at += 1
        return (
            np.array([self.at, action], np.float32),
            reward,
            self.at == len(self.rewards),
            False,
            {},
        )

    def close(self) -> None:
        self.closes += 1


class TracingMemory(Memory):
    """A memory that records when a row is added."""

    def __init__(self, trace: list[Any], size: int = 100, batch_size: int = 4) -> None:
        super().__init__(size, batch_size)
        self.trace = trace

    def step(self, **row: Any) -> None:
        self.trace.append("store")
        super().step(**row)
