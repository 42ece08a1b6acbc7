"""Policies and algorithms with torch for tests of the garage-style trainer."""

from typing import Any

import numpy as np
import torch
from torch import nn

from workers.core.recipes import rebuildable
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch
from workers.entrypoints.trainer_parts.samplers import LocalSampler


@rebuildable
class TorchPolicy(nn.Module):
    """A policy that samples actions from the probabilities of a small network."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observations, 8), nn.Tanh(), nn.Linear(8, actions))

    def forward(self, observation: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.net(observation))

    def get_action(self, observation: Any) -> tuple[int, dict[str, Any]]:
        actions, infos = self.get_actions(np.asarray(observation)[None])
        return int(actions[0]), {name: value[0] for name, value in infos.items()}

    def get_actions(self, observations: Any) -> tuple[Any, dict[str, Any]]:
        with torch.no_grad():
            drawn = self(torch.as_tensor(np.asarray(observations), dtype=torch.float32))
            actions = drawn.sample()
        return actions.numpy(), {"log_prob": drawn.log_prob(actions).numpy()}


@rebuildable
class Reinforce:
    """REINFORCE as user code: it has no `state_dict`.

    Its state is an optimiser, a running baseline and a random generator.
    """

    def __init__(self, env: Any, learning_rate: float = 0.01, sampler: Any = None) -> None:
        self.policy = TorchPolicy(env.observation_space.shape[0], int(env.action_space.n))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=learning_rate)
        self.baseline = 0.0
        self.history: list[float] = []
        self.shuffler = np.random.default_rng(3)
        self._sampler = sampler or LocalSampler(self.policy, env, max_episode_length=60, seed=11)

    def train(self, trainer: Any) -> float | None:
        average = None
        for _ in trainer.step_epochs():
            batch = trainer.obtain_episodes(trainer.step_itr)
            trainer.step_episode = batch
            average = float(
                np.mean(trainer.log_performance(trainer.step_itr, batch, 0.99, prefix="Train"))
            )
            self._train_once(batch)
            self.history.append(average)
            trainer.log("Policy/Baseline", self.baseline)
            trainer.step_itr += 1
        return average

    def _train_once(self, batch: EpisodeBatch) -> None:
        returns = np.concatenate(
            [np.cumsum(batch.rewards[part][::-1])[::-1] for part in batch.slices()]
        )
        order = self.shuffler.permutation(len(returns))
        # The noise is from the global generator, which a resume must continue.
        noise = 1e-3 * torch.rand(len(order))
        advantage = torch.as_tensor(returns[order] - self.baseline, dtype=torch.float32) + noise
        drawn = self.policy(torch.as_tensor(batch.observations[order]))
        loss = -(drawn.log_prob(torch.as_tensor(batch.actions[order])) * advantage).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.baseline = 0.9 * self.baseline + 0.1 * float(returns.mean())
