"""Q-learning with normalised advantage functions (NAF).

Gu et al. 2016, section 4 (the quadratic advantage) and algorithm 1.

N samples of a batch, A entries of an action, E = A (A + 1) / 2. One network gives mu [A] before
tanh, V [1] and the entries of L [E].
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import NafParameters
from workers.acceleration.update_runner import Gradient
from workers.core.types import AgentContext
from workers.rl.agents.common.action_encoding import box_actions
from workers.rl.agents.common.algorithm import ReplayBatch, UpdateResult, bootstrap_target
from workers.rl.agents.common.continuous import (
    DeterministicAlgorithm,
    additive_noise,
    build_continuous,
)
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import adam, adam_start, clip_to_norm
from workers.rl.agents.common.q_learning import QState
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.parameter_layout import Layout, Parameters


@dataclass(frozen=True)
class Naf(DeterministicAlgorithm):
    """Targets, loss and update of NAF for one definition, as pure functions."""

    layouts: Layouts
    hyper: NafParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/td", "q/mean", "gradient/norm")
    actor: ClassVar[str] = "parameters"

    def start(self, generator: torch.Generator) -> QState:
        """Returns the state before the first update."""
        vector = self.layouts["parameters"].join(self.policy.draw_uniform(generator))
        return QState(vector, vector, adam_start(vector, self.hyper.learning_rate))

    def triangle(self, entries: Tensor) -> Tensor:
        """Returns L float32 [N, A, A], lower triangular with a positive diagonal.

        `entries` [N, E] are in row-major order. The exponential function is applied to the
        diagonal, so that P = L L^T is positive definite.
        """
        rows, columns = np.tril_indices(self.size)
        places = torch.zeros(self.size, self.size, dtype=torch.int64)
        places[rows, columns] = torch.arange(len(rows))
        full = entries[..., places.to(entries.device)]
        diagonal = torch.eye(self.size, device=entries.device)
        return torch.tril(full, -1) + diagonal * torch.where(diagonal > 0, full, 0.0).exp()

    def advantages(self, outputs: Tensor, action: Tensor) -> Tensor:
        """Returns A(s, a) = -1/2 (a - mu)^T L L^T (a - mu) float32 [N], at most 0."""
        difference = action - outputs[..., : self.size].tanh()
        stretched = (
            self.triangle(outputs[..., self.size + 1 :]).mT @ difference.unsqueeze(-1)
        ).squeeze(-1)
        return -0.5 * stretched.square().sum(-1)

    def values(self, parameters: Parameters, observation: Tensor, action: Tensor) -> Tensor:
        """Returns Q(s, a) = A(s, a) + V(s) float32 [N]."""
        outputs = self.policy(parameters, self.encoding(observation))
        return self.advantages(outputs, action) + outputs[..., self.size]

    def td_targets(self, targets: Parameters, batch: ReplayBatch) -> Tensor:
        """Returns y = r + gamma V'(s') float32 [N]; V(s) is the maximum of Q(s, a) over a."""
        return bootstrap_target(
            batch, self.policy(targets, self.encoding(batch.next_observation))[..., self.size]
        )

    def loss(
        self, parameters: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the mean of (y - Q(s, a))^2 [].

        The second result holds the mean value [] and the absolute errors [N].
        """
        value = self.values(parameters, batch.observation, batch.action)
        error = value - td_targets
        return (error.square() * batch.weight).mean(), (value.mean(), error.abs())

    def update(self, gradient: Gradient, state: QState, batch: ReplayBatch) -> UpdateResult[QState]:
        """Makes a gradient step, and moves the target network towards the online network."""
        split = self.layouts["parameters"].split
        wanted = self.td_targets(split(state.targets), batch)
        grad, loss, (value, error) = gradient(
            lambda theta: self.loss(split(theta), batch, wanted), state.parameters
        )
        grad, norm = clip_to_norm(grad, self.hyper.max_grad_norm)
        parameters, optimizer = adam(state.parameters, grad, state.optimizer)
        targets = torch.lerp(state.targets, parameters, self.hyper.tau)
        return UpdateResult(
            QState(parameters, targets, optimizer), torch.stack((loss, value, norm)), error
        )


def build(parameters: NafParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions, encoding = (
        box_actions(context.action_space, "naf"),
        encoding_of(context.observation_space),
    )
    size = actions.raw_shape[0]
    outputs = size + 1 + size * (size + 1) // 2
    network = Mlp("naf", (encoding.size, *parameters.hidden_sizes, outputs), parameters.activation)
    layout = Layout(network.shapes())
    algorithm = Naf(network, encoding, size, {"parameters": layout, "targets": layout}, parameters)
    noise = additive_noise(parameters.noise, parameters.noise_scale, context.seed)
    return build_continuous(algorithm, parameters, context, actions, noise)
