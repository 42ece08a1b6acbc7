"""Soft actor-critic as a plain loop: two critics, a squashed Gaussian, a learned temperature."""

import copy
import itertools

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.plain_dqn import Replay, mlp
from benchmarks._peers.tasks import SacSettings, Task


def build(task: Task, settings: SacSettings, seed: int, env_steps: int) -> Loop:
    torch.manual_seed(seed)
    env = gym.make(task.env)
    inputs, outputs, scale = (
        env.observation_space.shape[0],
        env.action_space.shape[0],
        float(env.action_space.high[0]),
    )
    learner = SacLearner(settings, inputs, outputs)
    replay = Replay(settings.buffer, inputs, ((outputs,), np.float32))

    def train() -> Measurements:
        random = np.random.default_rng(seed)
        observation, _ = env.reset(seed=seed)
        for step in range(env_steps):
            if step < settings.learning_starts:
                action = random.uniform(-1, 1, outputs).astype(np.float32)
            else:
                with torch.no_grad():
                    action = learner.sample(torch.from_numpy(observation).unsqueeze(0))[0].numpy()[
                        0
                    ]
            successor, reward, terminated, truncated, _ = env.step(action * scale)
            replay.add(observation, action, reward, successor, terminated)
            observation = env.reset()[0] if terminated or truncated else successor
            if step >= settings.learning_starts:
                learner.update(replay.sample(random, settings.batch))
        return Measurements(env_steps)

    def act(observation: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            mean, _ = learner.actor(torch.from_numpy(observation).unsqueeze(0)).chunk(2, dim=1)
        return mean.tanh().numpy()[0] * scale

    return Loop(train, act, env.close)


class SacLearner:
    """The networks and optimizers of soft actor-critic, and one update of them."""

    def __init__(self, settings: SacSettings, inputs: int, outputs: int) -> None:
        self._settings = settings
        self.actor = mlp(inputs, settings.hidden, 2 * outputs, nn.ReLU)
        self._critics = [mlp(inputs + outputs, settings.hidden, 1, nn.ReLU) for _ in range(2)]
        self._targets = copy.deepcopy(self._critics)
        self._log_temperature = torch.zeros(1, requires_grad=True)
        self._target_entropy = -float(outputs)
        critic_parameters = list(
            itertools.chain.from_iterable(critic.parameters() for critic in self._critics)
        )
        parts = (self.actor.parameters(), critic_parameters, [self._log_temperature])
        self._actor_step, self._critic_step, self._temperature_step = (
            torch.optim.Adam(part, lr=settings.learning_rate) for part in parts
        )
        self._pairs = list(
            zip(
                critic_parameters,
                itertools.chain.from_iterable(one.parameters() for one in self._targets),
                strict=True,
            )
        )

    def sample(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns actions in (-1, 1) and their log-probabilities."""
        mean, log_std = self.actor(observation).chunk(2, dim=1)
        log_std = log_std.clamp(-20, 2)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        density = -0.5 * noise.square() - log_std - 0.5 * np.log(2 * np.pi)
        squash = 2 * (np.log(2) - raw - functional.softplus(-2 * raw))
        return raw.tanh(), (density - squash).sum(1)

    def update(self, batch: list[torch.Tensor]) -> None:
        observation, action, reward, successor, terminated = batch
        temperature = self._log_temperature.detach().exp()
        with torch.no_grad():
            next_action, log_probability = self.sample(successor)
            value = (
                self._least(self._targets, successor, next_action) - temperature * log_probability
            )
            wanted = reward + self._settings.gamma * (1 - terminated) * value
        inputs = torch.cat((observation, action), 1)
        loss = sum(
            functional.mse_loss(critic(inputs).squeeze(1), wanted) for critic in self._critics
        )
        _descend(self._critic_step, loss)

        action, log_probability = self.sample(observation)
        _descend(
            self._actor_step,
            (
                temperature * log_probability - self._least(self._critics, observation, action)
            ).mean(),
        )
        entropy_gap = (log_probability.detach() + self._target_entropy).mean()
        _descend(self._temperature_step, (-self._log_temperature.exp() * entropy_gap).sum())
        with torch.no_grad():
            for online, target in self._pairs:
                target.lerp_(online, self._settings.tau)

    @staticmethod
    def _least(
        critics: list[nn.Sequential], observation: torch.Tensor, action: torch.Tensor
    ) -> torch.Tensor:
        inputs = torch.cat((observation, action), 1)
        return torch.minimum(*(critic(inputs).squeeze(1) for critic in critics))


def _descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
