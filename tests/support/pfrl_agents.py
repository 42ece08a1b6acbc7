"""Agents with PFRL's methods that do not import Palestra."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


class ScriptedAgent:
    """An agent that appends every call to `calls` and always takes action `action`."""

    training = True

    def __init__(self, action: Any = 0, *, calls: list[Any] | None = None) -> None:
        self.action = action
        self.calls: list[Any] = [] if calls is None else calls
        self.t = 0
        self.updates = 0

    def act(self, obs: Any) -> Any:
        self.calls.append(("act", self.training, obs))
        return self.action

    def observe(self, obs: Any, reward: float, done: bool, reset: bool) -> None:
        self.calls.append(("observe", self.training, obs, reward, done, reset))
        if self.training:
            self.t += 1
            self.updates += 1

    def save(self, dirname: str) -> None:
        self.calls.append(("save", self.training, dirname))
        Path(dirname).mkdir(parents=True, exist_ok=True)
        (Path(dirname) / "model.txt").write_text(str(self.updates))

    def load(self, dirname: str) -> None:
        self.updates = int((Path(dirname) / "model.txt").read_text())

    def get_statistics(self) -> list[tuple[str, Any]]:
        return [("updates", self.updates)]

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        before, self.training = self.training, False
        try:
            yield
        finally:
            self.training = before

    def list_calls(self, name: str, *, training: bool = True) -> list[Any]:
        """Returns the calls of a method, in training or in evaluation mode."""
        return [call for call in self.calls if call[0] == name and call[1] is training]


class ScriptedBatch(ScriptedAgent):
    """A `ScriptedAgent` for several environments."""

    def batch_act(self, batch_obs: Any) -> Any:
        self.calls.append(("batch_act", self.training, list(batch_obs)))
        return [self.action] * len(batch_obs)

    def batch_observe(
        self, batch_obs: Any, batch_reward: Any, batch_done: Any, batch_reset: Any
    ) -> None:
        self.calls.append(
            ("batch_observe", self.training, list(batch_obs), batch_reward, batch_done, batch_reset)
        )
        if self.training:
            self.t += len(batch_obs)
            self.updates += 1


class Learner(ScriptedBatch):
    """An agent whose weights change with every transition, with its own random generator.

    `state_dict` returns its whole state.
    """

    def __init__(self, actions: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.weights = np.zeros(4)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.actions = actions

    def act(self, obs: Any) -> Any:
        return self.batch_act([obs])[0]

    def observe(self, obs: Any, reward: float, done: bool, reset: bool) -> None:
        self.batch_observe([obs], [reward], [done], [reset])

    def batch_act(self, batch_obs: Any) -> Any:
        greedy = [
            int(abs(float(np.resize(obs, 4) @ self.weights)) * 1e6) % self.actions
            for obs in batch_obs
        ]
        return [
            int(self.rng.integers(self.actions))
            if self.training and self.rng.random() < 0.5
            else one
            for one in greedy
        ]

    def batch_observe(
        self, batch_obs: Any, batch_reward: Any, batch_done: Any, batch_reset: Any
    ) -> None:
        if not self.training:
            return
        for obs, reward, done in zip(batch_obs, batch_reward, batch_done, strict=True):
            self.t += 1
            self.weights = (
                0.9 * self.weights
                + 0.1 * np.resize(obs, 4) * float(reward) * (0.5 if done else 1.0)
                + self.rng.normal(size=4) * 0.01
            )

    def save(self, dirname: str) -> None:
        np.save(Path(dirname) / "weights.npy", self.weights)

    def load(self, dirname: str) -> None:
        self.weights = np.load(Path(dirname) / "weights.npy")

    def get_statistics(self) -> list[tuple[str, Any]]:
        return [("norm", float(np.linalg.norm(self.weights))), ("seen", self.t)]

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights, "rng": json.dumps(self.rng.bit_generator.state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = np.array(state["weights"])
        self.rng.bit_generator.state = json.loads(state["rng"])
