"""Environments and agents with numbers that are not finite, from a chosen step on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

SPACE = gym.spaces.Box(-10.0, 10.0, (2,), np.float32)
_ACTIONS = {
    False: gym.spaces.Discrete(3),
    True: gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
}


class DivergingEnv(gym.Env[np.ndarray, Any]):
    """An environment whose rewards are `bad` after the step `since` of its lifetime, up to `until`.

    An episode ends after `length` steps.
    """

    observation_space = SPACE

    def __init__(
        self,
        since: int = 0,
        *,
        until: int = 2**62,
        continuous: bool = False,
        length: int = 8,
        bad: str = "nan",
    ) -> None:
        self.action_space = _ACTIONS[continuous]
        self.since, self.until, self.length, self.bad = since, until, length, float(bad)
        self.steps, self.in_episode = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.in_episode = 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.in_episode += 1
        is_bad = self.since < self.steps <= self.until
        reward = self.bad if is_bad else float(np.sum(action))
        return self.observe(), reward, self.in_episode == self.length, False, {}

    def observe(self) -> np.ndarray:
        return np.array([self.in_episode, self.np_random.random()], np.float32)


class TorchAgent:
    """An agent with PFRL's methods that regresses rewards, one update in each `observe`."""

    training = True

    def __init__(self) -> None:
        self.model = nn.Linear(2, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def act(self, obs: np.ndarray) -> int:
        return int(self.model(torch.from_numpy(obs)).argmax())

    def observe(self, obs: np.ndarray, reward: float, done: bool, reset: bool) -> None:
        if self.training:
            loss = (self.model(torch.from_numpy(obs)) - reward).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def save(self, dirname: str) -> None:
        torch.save(self.model.state_dict(), Path(dirname) / "model.pt")

    def load(self, dirname: str) -> None:
        self.model.load_state_dict(torch.load(Path(dirname) / "model.pt"))

    def get_statistics(self) -> list[tuple[str, Any]]:
        return []

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        before, self.training = self.training, False
        try:
            yield
        finally:
            self.training = before


if "Diverging-v0" not in gym.registry:
    gym.register("Diverging-v0", f"{__name__}:DivergingEnv")
