"""Twin delayed deep deterministic policy gradient (Fujimoto, van Hoof & Meger 2018), algorithm 1.

N samples of a batch. Both critics are one stacked network. The policy and the targets are updated
only at every d-th update. The shell counts updates and selects the update function of `Td3.cycle`,
so that the other updates do not compute a gradient of the policy.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import Td3Parameters
from workers.acceleration.update_runner import Gradient
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import box_actions
from workers.rl.agents.common.algorithm import ReplayBatch, Update, UpdateResult, bootstrap_target
from workers.rl.agents.common.continuous import (
    DeterministicAlgorithm,
    actor_critic_layouts,
    additive_noise,
    build_continuous,
)
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import AdamState, adam, adam_start
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.ensemble import Ensemble
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.parameter_layout import Parameters


class Td3State(NamedTuple):
    """Learning state of TD3; an update returns a new one."""

    actor: Tensor
    """float32: phi of the policy."""
    actor_targets: Tensor
    """float32: phi of the target policy."""
    critics: Tensor
    """float32: theta of both critics."""
    critic_targets: Tensor
    """float32: theta of both target critics."""
    actor_loss: Tensor
    """float32 []: loss of the policy's last update, for the report; 0 before the first."""
    actor_optimizer: AdamState
    critic_optimizer: AdamState


@dataclass(frozen=True)
class Td3(DeterministicAlgorithm):
    """Targets, losses and updates of TD3 for one definition, as pure functions."""

    critics: Ensemble
    layouts: Layouts
    hyper: Td3Parameters
    report_names: ClassVar[tuple[str, ...]] = (
        "loss/critic",
        "loss/actor",
        "q/mean",
        "gradient/norm",
    )
    actor: ClassVar[str] = "actor"

    def start(self, generator: torch.Generator) -> Td3State:
        """Returns the state before the first update."""
        actor = self.layouts["actor"].join(self.policy.draw_uniform(generator))
        critics = self.layouts["critics"].join(self.critics.draw_uniform(generator))
        optimizers = (adam_start(vector, self.hyper.learning_rate) for vector in (actor, critics))
        return Td3State(actor, actor, critics, critics, torch.zeros(()), *optimizers)

    def values(self, critics: Parameters, encoded: Tensor, action: Tensor) -> Tensor:
        """Returns Q of each critic, float32 [critics, N]."""
        return self.critics(critics, torch.cat((encoded, action), -1)).squeeze(-1)

    def smooth_action(self, action: Tensor, normal: Tensor) -> Tensor:
        """Returns a + clip(epsilon, -c, c), clipped to the bounds of actions (section 5.3).

        epsilon is `target_noise` times the standard normal numbers `normal`.
        """
        clip = self.hyper.target_noise_clip
        return (action + (self.hyper.target_noise * normal).clamp(-clip, clip)).clamp(-1, 1)

    def td_targets(
        self, actor_targets: Parameters, critic_targets: Parameters, batch: ReplayBatch
    ) -> Tensor:
        """Returns r + gamma min Q_target(s', a') float32 [N] (equation 10).

        a' is the target policy's action with clipped noise.
        """
        encoded = self.encoding(batch.next_observation)
        action = self.smooth_action(self.greedy(actor_targets, encoded), batch.noise[0])
        return bootstrap_target(batch, self.values(critic_targets, encoded, action).amin(0))

    def critic_loss(
        self, critics: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the sum of both critics' mean squared errors [].

        The second result holds the mean value [] and the absolute errors [N], averaged over the
        critics.
        """
        value = self.values(critics, self.encoding(batch.observation), batch.action)
        error = value - td_targets
        return (error.square() * batch.weight).mean(-1).sum(), (value.mean(), error.abs().mean(0))

    def actor_loss(
        self, actor: Parameters, first_critic: Parameters, batch: ReplayBatch
    ) -> tuple[Tensor, tuple[()]]:
        """Returns minus the mean of the first critic's values of the policy's actions []."""
        encoded = self.encoding(batch.observation)
        return -self.values(first_critic, encoded, self.greedy(actor, encoded)).mean(), ()

    @property
    def cycle(self) -> tuple[Update, ...]:
        """`policy_delay` update functions; only the last one also updates policy and targets."""
        return (*[self.update_critics] * (self.hyper.policy_delay - 1), self.update)

    def update_critics(
        self, gradient: Gradient, state: Td3State, batch: ReplayBatch
    ) -> UpdateResult[Td3State]:
        """Makes a gradient step of the critics."""
        critic = self.layouts["critics"].split
        wanted = self.td_targets(
            self.layouts["actor"].split(state.actor_targets), critic(state.critic_targets), batch
        )
        grad, loss, (value, error) = gradient(
            lambda theta: self.critic_loss(critic(theta), batch, wanted), state.critics
        )
        critics, optimizer = adam(state.critics, grad, state.critic_optimizer)
        norm = torch.linalg.vector_norm(grad)
        report = torch.stack((loss, state.actor_loss, value, norm))
        return UpdateResult(
            state._replace(critics=critics, critic_optimizer=optimizer), report, error
        )

    def update(
        self, gradient: Gradient, state: Td3State, batch: ReplayBatch
    ) -> UpdateResult[Td3State]:
        """Makes a gradient step of the critics, then of the policy, and updates all targets."""
        state, report, error = self.update_critics(gradient, state, batch)
        actor, first_critic = (
            self.layouts["actor"].split,
            self.critics.first(self.layouts["critics"].split(state.critics)),
        )
        grad, loss, _ = gradient(
            lambda phi: self.actor_loss(actor(phi), first_critic, batch), state.actor
        )
        policy, optimizer = adam(state.actor, grad, state.actor_optimizer)
        state = state._replace(
            actor=policy,
            actor_targets=torch.lerp(state.actor_targets, policy, self.hyper.tau),
            critic_targets=torch.lerp(state.critic_targets, state.critics, self.hyper.tau),
            actor_loss=loss,
            actor_optimizer=optimizer,
        )
        return UpdateResult(state, torch.stack((report[0], loss, *report[2:])), error)

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns the normal numbers for smoothing the target actions, float32 [*shape, A]."""
        return (generator.standard_normal((*shape, self.size), dtype=np.float32),)


def build(parameters: Td3Parameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions, encoding = (
        box_actions(context.action_space, "td3"),
        encoding_of(context.observation_space),
    )
    size, hidden = actions.raw_shape[0], parameters.hidden_sizes
    policy = Mlp("policy", (encoding.size, *hidden, size), parameters.activation)
    critics = Ensemble("q", 2, (encoding.size + size, *hidden, 1), parameters.activation)
    algorithm: Any = Td3(
        policy, encoding, size, critics, actor_critic_layouts(policy, critics), parameters
    )
    noise = additive_noise("gaussian", parameters.exploration_noise, context.seed)
    return build_continuous(algorithm, parameters, context, actions, noise)
