"""Deep Q-learning as a plain loop."""

import copy
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.tasks import DqnSettings, Task


def build(task: Task, settings: DqnSettings, seed: int, env_steps: int) -> Loop:
    torch.manual_seed(seed)
    env = gym.make(task.env)
    actions, inputs = int(env.action_space.n), env.observation_space.shape[0]
    online = mlp(inputs, settings.hidden, actions, nn.ReLU)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=settings.learning_rate)
    replay = Replay(settings.buffer, inputs)

    def greedy(observation: np.ndarray) -> int:
        with torch.no_grad():
            return int(online(torch.from_numpy(observation).unsqueeze(0)).argmax(1))

    def update(batch: list[torch.Tensor]) -> None:
        observation, action, reward, successor, terminated = batch
        with torch.no_grad():
            wanted = reward + settings.gamma * (1 - terminated) * target(successor).amax(1)
        value = online(observation).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = functional.smooth_l1_loss(value, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def train() -> Measurements:
        random = np.random.default_rng(seed)
        observation, _ = env.reset(seed=seed)
        updates = 0
        for step in range(env_steps):
            done = min(1.0, step / settings.epsilon_steps)
            epsilon = settings.epsilon_start + done * (
                settings.epsilon_end - settings.epsilon_start
            )
            action = (
                int(random.integers(actions)) if random.random() < epsilon else greedy(observation)
            )
            successor, reward, terminated, truncated, _ = env.step(action)
            replay.add(observation, action, reward, successor, terminated)
            observation = env.reset()[0] if terminated or truncated else successor
            if step >= settings.learning_starts and step % settings.train_every == 0:
                update(replay.sample(random, settings.batch))
                updates += 1
                if updates % settings.target_every == 0:
                    target.load_state_dict(online.state_dict())
        return Measurements(env_steps)

    return Loop(train, greedy, env.close)


class Replay:
    """A ring buffer of transitions in numpy arrays."""

    def __init__(
        self, capacity: int, inputs: int, action: tuple[tuple[int, ...], Any] = ((), np.int64)
    ) -> None:
        shape, dtype = action
        self._arrays = (
            np.zeros((capacity, inputs), np.float32),
            np.zeros((capacity, *shape), dtype),
            np.zeros(capacity, np.float32),
            np.zeros((capacity, inputs), np.float32),
            np.zeros(capacity, np.float32),
        )
        self._capacity, self._total = capacity, 0

    def add(self, *row: Any) -> None:
        place = self._total % self._capacity
        for array, value in zip(self._arrays, row, strict=True):
            array[place] = value
        self._total += 1

    def sample(self, random: np.random.Generator, count: int) -> list[torch.Tensor]:
        places = random.integers(min(self._total, self._capacity), size=count)
        return [torch.from_numpy(array[places]) for array in self._arrays]


def mlp(
    inputs: int, hidden: Sequence[int], outputs: int, activation: type[nn.Module]
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [nn.Linear(inputs, units), activation()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))
