"""Deep deterministic policy gradient (Lillicrap et al. 2016), algorithm 1. N samples of a batch.

Differences from section 7: there is no batch normalisation, and the action is an input of the
critic's first layer instead of its second.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from palestra.contract.agents import DdpgParameters
from workers.acceleration.update_runner import Gradient
from workers.core.types import AgentContext
from workers.rl.agents.common.action_encoding import box_actions
from workers.rl.agents.common.algorithm import ReplayBatch, UpdateResult, bootstrap_target
from workers.rl.agents.common.continuous import (
    DeterministicAlgorithm,
    actor_critic_layouts,
    additive_noise,
    build_continuous,
)
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import AdamState, adam, adam_start
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.initialisation import DDPG_BOUND
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.parameter_layout import Parameters


class DdpgState(NamedTuple):
    """Learning state of DDPG; an update returns a new one."""

    actor: Tensor
    """float32: theta of the policy mu."""
    actor_targets: Tensor
    """float32: theta of the target policy."""
    critics: Tensor
    """float32: theta of the critic Q."""
    critic_targets: Tensor
    """float32: theta of the target critic."""
    actor_optimizer: AdamState
    critic_optimizer: AdamState


@dataclass(frozen=True)
class Ddpg(DeterministicAlgorithm):
    """Targets, losses and update of DDPG for one definition, as pure functions."""

    critic: Mlp
    layouts: Layouts
    hyper: DdpgParameters
    report_names: ClassVar[tuple[str, ...]] = (
        "loss/critic",
        "loss/actor",
        "q/mean",
        "gradient/norm",
    )
    actor: ClassVar[str] = "actor"

    def start(self, generator: torch.Generator) -> DdpgState:
        """Returns the initial state; weights of the last layers are near 0 (section 7)."""
        actor = self.layouts["actor"].join(self.policy.draw_uniform(generator, last=DDPG_BOUND))
        critic = self.layouts["critics"].join(self.critic.draw_uniform(generator, last=DDPG_BOUND))
        optimizers = (
            adam_start(actor, self.hyper.actor_learning_rate),
            adam_start(critic, self.hyper.learning_rate),
        )
        return DdpgState(actor, actor, critic, critic, *optimizers)

    def values(self, critic: Parameters, encoded: Tensor, action: Tensor) -> Tensor:
        """Returns Q float32 [N]."""
        return self.critic(critic, torch.cat((encoded, action), -1)).squeeze(-1)

    def td_targets(
        self, actor_targets: Parameters, critic_targets: Parameters, batch: ReplayBatch
    ) -> Tensor:
        """Returns y = r + gamma Q'(s', mu'(s')) float32 [N]."""
        encoded = self.encoding(batch.next_observation)
        return bootstrap_target(
            batch, self.values(critic_targets, encoded, self.greedy(actor_targets, encoded))
        )

    def critic_loss(
        self, critic: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the mean of (y - Q(s, a))^2 [] (equation 4).

        The second result holds the mean value [] and the absolute errors [N].
        """
        value = self.values(critic, self.encoding(batch.observation), batch.action)
        error = value - td_targets
        return (error.square() * batch.weight).mean(), (value.mean(), error.abs())

    def actor_loss(
        self, actor: Parameters, critic: Parameters, batch: ReplayBatch
    ) -> tuple[Tensor, tuple[()]]:
        """Returns minus the mean of Q(s, mu(s)) [], whose gradient is equation 6."""
        encoded = self.encoding(batch.observation)
        return -self.values(critic, encoded, self.greedy(actor, encoded)).mean(), ()

    def update(
        self, gradient: Gradient, state: DdpgState, batch: ReplayBatch
    ) -> UpdateResult[DdpgState]:
        """Makes a gradient step of the critic, then of the policy, and updates both targets."""
        actor, critic = self.layouts["actor"].split, self.layouts["critics"].split
        wanted = self.td_targets(actor(state.actor_targets), critic(state.critic_targets), batch)
        grad, critic_loss, (value, error) = gradient(
            lambda theta: self.critic_loss(critic(theta), batch, wanted), state.critics
        )
        norm = torch.linalg.vector_norm(grad)
        grad = grad + self.hyper.critic_weight_decay * state.critics
        critics, critic_optimizer = adam(state.critics, grad, state.critic_optimizer)
        fixed = critic(critics)
        grad, actor_loss, _ = gradient(
            lambda theta: self.actor_loss(actor(theta), fixed, batch), state.actor
        )
        policy, actor_optimizer = adam(state.actor, grad, state.actor_optimizer)
        state = DdpgState(
            actor=policy,
            actor_targets=torch.lerp(state.actor_targets, policy, self.hyper.tau),
            critics=critics,
            critic_targets=torch.lerp(state.critic_targets, critics, self.hyper.tau),
            actor_optimizer=actor_optimizer,
            critic_optimizer=critic_optimizer,
        )
        report = torch.stack((critic_loss, actor_loss, value, norm))
        return UpdateResult(state, report, error)


def build(parameters: DdpgParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions, encoding = (
        box_actions(context.action_space, "ddpg"),
        encoding_of(context.observation_space),
    )
    size, hidden = actions.raw_shape[0], parameters.hidden_sizes
    policy = Mlp("policy", (encoding.size, *hidden, size), parameters.activation)
    critic = Mlp("q", (encoding.size + size, *hidden, 1), parameters.activation)
    algorithm = Ddpg(
        policy, encoding, size, critic, actor_critic_layouts(policy, critic), parameters
    )
    noise = additive_noise(parameters.noise, parameters.noise_scale, context.seed)
    return build_continuous(algorithm, parameters, context, actions, noise)
