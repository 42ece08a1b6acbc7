"""Quantile regression DQN (Dabney, Rowland, Bellemare & Munos 2018, AAAI).

"Distributional Reinforcement Learning with Quantile Regression".

Optional, as in `workers.rl.agents.c51`: double Q-learning, dueling streams, noisy layers, n-step
returns and prioritized replay. B samples of a batch, A actions, N quantiles.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from palestra.contract.agents.q_learning import QrDqnParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import discrete_actions
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.common.q_learning import (
    QLearning,
    build_q_learning,
    gather_actions,
    value_network,
)
from workers.rl.agents.common.quantile_regression import quantile_loss, quantile_targets
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.action_values import ActionValues
from workers.rl.networks.parameter_layout import Parameters


def midpoints(count: int, device: torch.device) -> Tensor:
    """Returns tau_hat_i = (2 i + 1) / (2 N) for i from 0 to N - 1, float32 [N] (lemma 2)."""
    return (2 * torch.arange(count, device=device) + 1) / (2 * count)


@dataclass(frozen=True)
class QuantileRegressionDqn(QLearning):
    """Targets and loss of QR-DQN for one definition. The network outputs theta [B, A, N]."""

    network: ActionValues
    hyper: QrDqnParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/quantile", "q/mean", "gradient/norm")

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: ReplayBatch) -> Tensor:
        """Returns T theta_j = r + gamma^n theta_j(s', a*) float32 [B, N] (algorithm 1).

        a* has the highest mean of quantiles by the target network, or with double Q-learning by the
        online network. If the episode terminated, the target is the reward.
        """
        _, of_target, of_choice = batch.noise or (None, None, None)
        quantiles = self.network(targets, batch.next_observation, of_target)
        choosing = (
            self.network(parameters, batch.next_observation, of_choice)
            if self.hyper.double
            else quantiles
        )
        following = gather_actions(quantiles, choosing.mean(2).argmax(1))
        return quantile_targets(batch, following)

    def loss(
        self, parameters: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the weighted mean of sum over i of E_j[rho_tau_hat_i(T theta_j - theta_i)] [].

        Algorithm 1, with the quantile Huber loss rho of equation 10, divided by kappa.

        The second result holds the mean value [] and the absolute errors of the means over
        quantiles [B].
        """
        quantiles = gather_actions(
            self.network(parameters, batch.observation, batch.noise[0] if batch.noise else None),
            batch.action,
        )
        fractions = midpoints(self.hyper.quantiles, quantiles.device).unsqueeze(0)
        return quantile_loss(quantiles, fractions, td_targets, batch.weight, self.hyper.kappa)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the actions int64 [B] of highest mean over the quantiles."""
        return self.network(parameters, observation, *noise).mean(2).argmax(1)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy; returns `None` for networks with convolutions."""
        quantiles = self.network.forward_numpy(parameters, observation, *noise)
        return None if quantiles is None else quantiles.mean(-1).argmax(-1)


def build(parameters: QrDqnParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions = discrete_actions(context.action_space, "qr_dqn")
    network = value_network(parameters, actions, context, atoms=parameters.quantiles)
    return build_q_learning(
        QuantileRegressionDqn(network, parameters), parameters, actions, context
    )
