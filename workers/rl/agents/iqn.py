"""Implicit quantile network (IQN).

Dabney, Ostrovski, Silver & Munos 2018, "Implicit Quantile Networks for Distributional RL".

B samples of a batch, A actions; N, N' and K fractions as in the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import Space
from torch import Tensor

from palestra.contract.agents import IqnParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import discrete_actions
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.common.q_learning import QLearning, build_q_learning
from workers.rl.agents.common.quantile_regression import quantile_loss, quantile_targets
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.action_values import TorsoNetwork, make_torso
from workers.rl.networks.cosine_embedding import CosineEmbedding
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.nature_cnn import NatureCnn
from workers.rl.networks.parameter_layout import Parameters


@dataclass(frozen=True)
class ImplicitQuantiles(TorsoNetwork):
    """Z_tau(x, a) = f(psi(x) * phi(tau))_a (section 3.2)."""

    embedding: CosineEmbedding
    head: Mlp

    @property
    def parts(self) -> tuple[Any, ...]:
        """Torso, embedding of the fractions and head."""
        return (self.torso, self.embedding, self.head)

    def __call__(self, parameters: Parameters, observation: Tensor, fractions: Tensor) -> Tensor:
        """Returns quantiles float32 [B, K, A] at fractions float32 [B, K]."""
        features = self.features(parameters, observation)
        return self.head(parameters, self.embedding(parameters, features, fractions))

    def forward_numpy(
        self, parameters: Mapping[str, Array], observation: Array, fractions: Array
    ) -> Array | None:
        """Computes the same function in numpy; returns `None` for networks with convolutions."""
        if isinstance(self.torso, NatureCnn):
            return None
        features = self.torso.forward_numpy(parameters, self.encoding.forward_numpy(observation))
        joined = features[..., None, :] * self.embedding.embed_numpy(parameters, fractions)
        flat = joined.reshape(*features.shape[:-2], -1, features.shape[-1])
        return self.head.forward_numpy(parameters, flat).reshape(
            *joined.shape[:-1], self.head.outputs
        )


@dataclass(frozen=True)
class Iqn(QLearning):
    """Targets, loss and random fractions of IQN for one definition, as pure functions."""

    network: ImplicitQuantiles
    hyper: IqnParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/quantile", "q/mean", "gradient/norm")

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: ReplayBatch) -> Tensor:
        """Returns r + gamma Z_tau'(x', a*) float32 [B, N'] (equation 2).

        a* has the highest mean of K quantiles (section 3) by the target network, or with double
        Q-learning by the online network.
        """
        _, of_target, of_choice = batch.noise
        best = (
            self.network(
                parameters if self.hyper.double else targets, batch.next_observation, of_choice
            )
            .mean(1)
            .argmax(1)
        )
        following = _select_action(self.network(targets, batch.next_observation, of_target), best)
        return quantile_targets(batch, following)

    def loss(
        self, parameters: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the weighted mean of 1/N' sum over i and j of rho(delta_ij) [] (equation 3).

        The second result holds the mean value [] and the absolute errors of the means over
        quantiles [B].
        """
        fractions = batch.noise[0]
        quantiles = _select_action(
            self.network(parameters, batch.observation, fractions), batch.action
        )
        return quantile_loss(quantiles, fractions, td_targets, batch.weight, self.hyper.kappa)

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns fractions drawn from U(0, 1).

        The arrays are tau [..., N], tau' [..., N'], and the K fractions by which a* is chosen
        [..., K].
        """
        hyper = self.hyper
        counts = hyper.fractions, hyper.target_fractions, hyper.acting_fractions
        return tuple(generator.random((*shape, count), np.float32) for count in counts)

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns fractions float32 [count, K] from U(0, 1), K per environment."""
        return (generator.random((count, self.hyper.acting_fractions), np.float32),)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the actions int64 [B] of highest mean over K quantiles.

        The fractions are `noise`, or without it the midpoints of K equal parts of [0, 1].
        """
        if noise:
            return self.network(parameters, observation, noise[0]).mean(1).argmax(1)
        count = self.hyper.acting_fractions
        fractions = (torch.arange(count, device=observation.device) + 0.5) / count
        return (
            self.network(parameters, observation, fractions.expand(observation.shape[0], -1))
            .mean(1)
            .argmax(1)
        )

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy; returns `None` for networks with convolutions."""
        front = observation.shape[: observation.ndim - len(self.network.encoding.shape)]
        count = self.hyper.acting_fractions
        even = (np.arange(count, dtype=np.float32) + np.float32(0.5)) / np.float32(count)
        quantiles = self.network.forward_numpy(
            parameters, observation, noise[0] if noise else np.broadcast_to(even, (*front, count))
        )
        return None if quantiles is None else quantiles.mean(-2).argmax(-1)


def build(parameters: IqnParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions = discrete_actions(context.action_space, "iqn")
    algorithm = Iqn(_network(context.observation_space, actions.count, parameters), parameters)
    return build_q_learning(algorithm, parameters, actions, context)


def _network(space: Space[object], actions: int, parameters: IqnParameters) -> ImplicitQuantiles:
    """Returns the network, with the embedded fractions before the last hidden layer (paper)."""
    hidden = parameters.hidden_sizes
    encoding, torso = make_torso(space, hidden[:-1], parameters.activation)
    head = Mlp("q", (torso.outputs, *hidden[-1:], actions), parameters.activation)
    return ImplicitQuantiles(
        encoding, torso, CosineEmbedding("tau", torso.outputs, parameters.cosines), head
    )


def _select_action(quantiles: Tensor, action: Tensor) -> Tensor:
    """Returns the quantiles [B, K] of actions int64 [B] from quantiles [B, K, A]."""
    return quantiles.gather(2, action.reshape(-1, 1, 1).expand(-1, quantiles.shape[1], 1)).squeeze(
        2
    )
