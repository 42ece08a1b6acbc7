"""Proximal policy optimisation and advantage actor-critic as plain loops.

They use Gymnasium's vector environment.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn

from benchmarks._peers.loops import Loop, Measurements
from benchmarks._peers.plain_dqn import mlp
from benchmarks._peers.tasks import A2cSettings, PpoSettings, Task

Rollout = tuple[torch.Tensor, ...]
"""Observations, actions, their log-probabilities, advantages, value targets: each [rollout x
environments, ...].
"""


def build(task: Task, settings: PpoSettings | A2cSettings, seed: int, env_steps: int) -> Loop:
    torch.manual_seed(seed)
    envs = SyncVectorEnv(
        [lambda: gym.make(task.env)] * settings.num_envs, autoreset_mode=AutoresetMode.SAME_STEP
    )
    inputs, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    actor = initialise(mlp(inputs, settings.hidden, actions, nn.Tanh), 0.01)
    critic = initialise(mlp(inputs, settings.hidden, 1, nn.Tanh), 1.0)
    collector = Collector(envs, actor, critic, settings, seed)
    learner = (
        PpoLearner(actor, critic, settings)
        if isinstance(settings, PpoSettings)
        else A2cLearner(actor, critic, settings)
    )

    def train() -> Measurements:
        while collector.env_steps < env_steps:
            learner.learn(collector.collect())
        return Measurements(collector.env_steps)

    def act(observation: np.ndarray) -> int:
        with torch.no_grad():
            return int(actor(torch.from_numpy(observation).unsqueeze(0)).argmax(1))

    return Loop(train, act, envs.close)


class ActorCriticLearner:
    """The networks, and the parts that the losses of PPO and A2C share."""

    def __init__(
        self, actor: nn.Module, critic: nn.Module, settings: PpoSettings | A2cSettings
    ) -> None:
        self._actor, self._critic = actor, critic
        self._weights = settings.value, settings.entropy, settings.max_grad_norm
        self._parameters = [*actor.parameters(), *critic.parameters()]

    def log_probability(self, batch: Rollout) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the log-probabilities of the actions, and the sum of the other loss terms."""
        observation, action, _, _, target = batch
        logs = self._actor(observation).log_softmax(1)
        entropy = -(logs.exp() * logs).sum(1).mean()
        value_loss = (self._critic(observation).squeeze(1) - target).square().mean()
        value_weight, entropy_weight, _ = self._weights
        return logs.gather(1, action.unsqueeze(1)).squeeze(
            1
        ), value_weight * value_loss - entropy_weight * entropy

    def descend(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, self._weights[2])
        optimizer.step()


class PpoLearner(ActorCriticLearner):
    """Minimises the clipped surrogate loss in several passes over minibatches."""

    def __init__(self, actor: nn.Module, critic: nn.Module, settings: PpoSettings) -> None:
        super().__init__(actor, critic, settings)
        self._settings = settings
        self._optimizer = torch.optim.Adam(self._parameters, lr=settings.learning_rate, eps=1e-5)

    def learn(self, rollout: Rollout) -> None:
        settings = self._settings
        for _ in range(settings.passes):
            for places in torch.randperm(len(rollout[0])).split(settings.minibatch):
                batch = tuple(column[places] for column in rollout)
                log_probability, others = self.log_probability(batch)
                advantage = (batch[3] - batch[3].mean()) / (batch[3].std() + 1e-8)
                ratio = (log_probability - batch[2]).exp()
                clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
                self.descend(
                    self._optimizer,
                    others - torch.minimum(ratio * advantage, clipped * advantage).mean(),
                )


class A2cLearner(ActorCriticLearner):
    """Takes one gradient step per rollout."""

    def __init__(self, actor: nn.Module, critic: nn.Module, settings: A2cSettings) -> None:
        super().__init__(actor, critic, settings)
        rate, decay, epsilon = settings.learning_rate, settings.rms_decay, settings.rms_epsilon
        self._optimizer = torch.optim.RMSprop(self._parameters, lr=rate, alpha=decay, eps=epsilon)

    def learn(self, rollout: Rollout) -> None:
        log_probability, others = self.log_probability(rollout)
        self.descend(self._optimizer, others - (log_probability * rollout[3]).mean())


class Collector:
    """Collects rollouts with advantages.

    At a time limit, the discounted value of the last observation is added to the reward.
    """

    def __init__(
        self,
        envs: Any,
        actor: nn.Module,
        critic: nn.Module,
        settings: PpoSettings | A2cSettings,
        seed: int,
    ) -> None:
        self._envs, self._actor, self._critic, self._settings = envs, actor, critic, settings
        self._lambda = settings.gae_lambda if isinstance(settings, PpoSettings) else 1.0
        self._observation, _ = envs.reset(seed=seed)
        self.env_steps = 0
        lead = (settings.rollout, settings.num_envs)
        self._observations = torch.zeros(*lead, self._observation.shape[1])
        self._actions = torch.zeros(lead, dtype=torch.int64)
        self._log_probabilities, self._values = torch.zeros(lead), torch.zeros(lead)
        self._rewards, self._ended = np.zeros(lead, np.float32), np.zeros(lead, np.float32)

    @torch.no_grad()
    def collect(self) -> Rollout:
        settings = self._settings
        for step in range(settings.rollout):
            observation = torch.from_numpy(self._observation)
            logs = self._actor(observation).log_softmax(1)
            action = torch.multinomial(logs.exp(), 1)
            self._observations[step], self._actions[step] = observation, action.squeeze(1)
            self._log_probabilities[step] = logs.gather(1, action).squeeze(1)
            self._values[step] = self._critic(observation).squeeze(1)
            self._observation, reward, terminated, truncated, infos = self._envs.step(
                action.squeeze(1).numpy()
            )
            for index in np.flatnonzero(truncated & ~terminated):
                last = torch.from_numpy(infos["final_obs"][index]).unsqueeze(0)
                reward[index] += settings.gamma * float(self._critic(last))
            self._rewards[step], self._ended[step] = reward, terminated | truncated
            self.env_steps += settings.num_envs
        advantages = self._advantages()
        columns = (
            self._observations,
            self._actions,
            self._log_probabilities,
            advantages,
            advantages + self._values,
        )
        return tuple(column.flatten(0, 1) for column in columns)

    def _advantages(self) -> torch.Tensor:
        gamma, values = self._settings.gamma, self._values.numpy()
        following = self._critic(torch.from_numpy(self._observation)).squeeze(1).numpy()
        advantages, running = np.zeros_like(values), np.zeros_like(following)
        for step in reversed(range(self._settings.rollout)):
            goes_on = 1 - self._ended[step]
            delta = self._rewards[step] + gamma * goes_on * following - values[step]
            running = delta + gamma * self._lambda * goes_on * running
            advantages[step], following = running, values[step]
        return torch.from_numpy(advantages)


def initialise(network: nn.Sequential, last_gain: float) -> nn.Sequential:
    """Gives a network orthogonal weights and zero biases."""
    linears = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in linears:
        nn.init.orthogonal_(layer.weight, last_gain if layer is linears[-1] else 2**0.5)
        nn.init.zeros_(layer.bias)
    return network
