"""PFRL's A3C on CartPole, for tests with several processes."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from pfrl.agents import A3C
from pfrl.optimizers import SharedRMSpropEpsInsideSqrt
from pfrl.policies import SoftmaxCategoricalHead
from torch import nn


class ActorCritic(nn.Module):
    """Policy and value network."""

    def __init__(self) -> None:
        super().__init__()
        self.pi = nn.Sequential(
            nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2), SoftmaxCategoricalHead()
        )
        self.v = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x: Any) -> Any:
        return self.pi(x), self.v(x)


def convert_to_float(observation: Any) -> Any:
    """Feature extractor: converts an observation to float32."""
    return np.asarray(observation, np.float32)


def make_a3c(process_idx: int) -> Any:
    torch.manual_seed(process_idx)
    model = ActorCritic()
    optimizer = SharedRMSpropEpsInsideSqrt(model.parameters(), lr=7e-3, eps=1e-1, alpha=0.99)
    return A3C(model, optimizer, t_max=5, gamma=0.99, process_idx=process_idx, phi=convert_to_float)


def make_cartpole(process_idx: int, test: bool) -> Any:
    return gym.make("CartPole-v1")
