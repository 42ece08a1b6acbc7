"""Categorical DQN, or C51.

Bellemare, Dabney & Munos 2017, "A Distributional Perspective on Reinforcement Learning".

Optional: double Q-learning, dueling streams, noisy layers, n-step returns and prioritized replay.
With all of these the agent is Rainbow (`workers.rl.agents.rainbow`). N samples of a batch, A
actions, K atoms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import C51Parameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import DiscreteActions, discrete_actions
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.common.q_learning import (
    QLearning,
    build_q_learning,
    gather_actions,
    value_network,
)
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.action_values import ActionValues
from workers.rl.networks.parameter_layout import Parameters


def project_distribution(
    probabilities: Tensor, reward: Tensor, discount: Tensor, support: Tensor
) -> Tensor:
    """Projects the distribution of reward + discount * Z onto the atoms of the support.

    (Phi T Z)_i = sum over j of [1 - |clip(r + gamma z_j, v_min, v_max) - z_i| / dz] between 0 and
    1, times p_j: equation 7. Algorithm 1 computes the same sum by distributing each p_j to the two
    neighbouring atoms; a value exactly at an atom adds all of p_j to that atom.

    Args:
        probabilities: p of Z, float32 [N, K].
        reward: float32 [N].
        discount: float32 [N]: gamma^n, or 0 if the episode terminated.
        support: z, float32 [K], evenly spaced from v_min to v_max.
    """
    moved = (reward.unsqueeze(1) + discount.unsqueeze(1) * support).clamp(support[0], support[-1])
    distance = (moved.unsqueeze(1) - support.unsqueeze(1)).abs() / (support[1] - support[0])
    return ((1 - distance).clamp(0, 1) @ probabilities.unsqueeze(2)).squeeze(2)


@dataclass(frozen=True)
class CategoricalDqn(QLearning):
    """Targets and loss of C51 for one definition. The network outputs logits [N, A, K]."""

    network: ActionValues
    hyper: C51Parameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/cross_entropy", "q/mean", "gradient/norm")

    def support(self, device: torch.device) -> Tensor:
        """Returns z, float32 [K]: z_i = v_min + i dz (section 4)."""
        return torch.linspace(self.hyper.v_min, self.hyper.v_max, self.hyper.atoms, device=device)

    def values(self, logits: Tensor) -> Tensor:
        """Returns Q = sum over i of z_i p_i float32 [N, A] of logits [N, A, K] (algorithm 1)."""
        return logits.softmax(-1) @ self.support(logits.device)

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: ReplayBatch) -> Tensor:
        """Returns m, the projected target distribution, float32 [N, K] (algorithm 1).

        a* is the best action by the target network, or with double Q-learning by the online
        network.
        """
        _, of_target, of_choice = batch.noise or (None, None, None)
        logits = self.network(targets, batch.next_observation, of_target)
        choosing = (
            self.network(parameters, batch.next_observation, of_choice)
            if self.hyper.double
            else logits
        )
        probabilities = gather_actions(logits, self.values(choosing).argmax(1)).softmax(1)
        return project_distribution(
            probabilities, batch.reward, batch.discount, self.support(logits.device)
        )

    def loss(
        self, parameters: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the weighted mean of -sum over i of m_i log p_i(s, a) [].

        The second result holds the mean value of the actions taken [] and the divergences [N].

        The cross-entropy is the part of the Kullback-Leibler divergence that has a gradient
        (algorithm 1); the divergence itself is the error of a sample (Hessel et al. 2018,
        "Rainbow", section "The integrated agent").
        """
        logits = gather_actions(
            self.network(parameters, batch.observation, batch.noise[0] if batch.noise else None),
            batch.action,
        )
        each = -(td_targets * logits.log_softmax(1)).sum(1)
        divergence = (each + torch.xlogy(td_targets, td_targets).sum(1)).clamp(min=0)
        return (each * batch.weight).mean(), (self.values(logits).mean(), divergence)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the actions int64 [N] of highest value."""
        return self.values(self.network(parameters, observation, *noise)).argmax(1)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy; returns `None` for networks with convolutions."""
        logits = self.network.forward_numpy(parameters, observation, *noise)
        if logits is None:
            return None
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        actions: Array = ((weights @ self._support) / weights.sum(-1)).argmax(-1)
        return actions

    @cached_property
    def _support(self) -> Array:
        return self.support(torch.device("cpu")).numpy()


def build_categorical(
    parameters: C51Parameters, actions: DiscreteActions, context: AgentContext
) -> ReplayAgent:
    """Returns an agent with the options in `parameters`, for C51 and Rainbow."""
    network = value_network(parameters, actions, context, atoms=parameters.atoms)
    return build_q_learning(CategoricalDqn(network, parameters), parameters, actions, context)


def build(parameters: C51Parameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    return build_categorical(parameters, discrete_actions(context.action_space, "c51"), context)
