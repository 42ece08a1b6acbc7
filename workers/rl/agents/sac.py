"""Soft actor-critic (SAC) with a learned temperature.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications".

Read in this order: this module (targets, losses and the update), `common/continuous.py` (what
agents for continuous actions are built of), `shells/replay_agent.py` (acting, storing, sampling).
Below them are library pieces: `common/squashed_gaussian.py` has the distribution of actions,
`common/optimizers.py` Adam, `networks/` the layers, `memory/` the replay memories, and
`workers.acceleration.update_runner` runs an update eagerly or compiled.

N samples of a batch, A entries of an action. Both critics are one stacked network, so that a layer
of both is one batched product. Only gradients that are used are computed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import SacParameters
from workers.acceleration.update_runner import Gradient
from workers.core.types import AgentContext, Array
from workers.rl.agents.common import squashed_gaussian
from workers.rl.agents.common.action_encoding import box_actions
from workers.rl.agents.common.algorithm import (
    ReplayBatch,
    UpdateCycle,
    UpdateResult,
    bootstrap_target,
)
from workers.rl.agents.common.continuous import actor_critic_layouts, build_continuous
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import AdamState, adam, adam_start
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.exploration.explorer import GreedyExplorer
from workers.rl.networks.ensemble import Ensemble
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import Encoding, encoding_of
from workers.rl.networks.parameter_layout import Parameters


class SacState(NamedTuple):
    """Learning state of SAC; an update returns a new one."""

    actor: Tensor
    """float32: phi of the policy."""
    critics: Tensor
    """float32: theta of both critics."""
    critic_targets: Tensor
    """float32: theta of both target critics."""
    log_temperature: Tensor
    """float32 []: log alpha."""
    actor_optimizer: AdamState
    critic_optimizer: AdamState
    temperature_optimizer: AdamState


@dataclass(frozen=True)
class Sac(UpdateCycle):
    """Targets, losses and update of SAC for one definition, as pure functions."""

    policy: Mlp
    critics: Ensemble
    encoding: Encoding
    layouts: Layouts
    target_entropy: float
    hyper: SacParameters
    report_names: ClassVar[tuple[str, ...]] = (
        "loss/critic",
        "loss/actor",
        "q/mean",
        "entropy",
        "temperature",
        "gradient/norm",
    )
    actor: ClassVar[str] = "actor"

    def start(self, generator: torch.Generator) -> SacState:
        """Returns the state before the first update."""
        actor = self.layouts["actor"].join(self.policy.draw_uniform(generator))
        critics = self.layouts["critics"].join(self.critics.draw_uniform(generator))
        log_temperature = torch.tensor(self.hyper.initial_temperature).log()
        optimizers = (
            adam_start(vector, self.hyper.learning_rate)
            for vector in (actor, critics, log_temperature)
        )
        return SacState(actor, critics, critics, log_temperature, *optimizers)

    def values(self, critics: Parameters, encoded: Tensor, action: Tensor) -> Tensor:
        """Returns Q of both critics, float32 [2, N]."""
        return self.critics(critics, torch.cat((encoded, action), -1)).squeeze(-1)

    def td_targets(
        self, actor: Parameters, targets: Parameters, temperature: Tensor, batch: ReplayBatch
    ) -> Tensor:
        """Returns r + gamma (min Q_target(s', a') - alpha log pi(a'|s')) float32 [N].

        a' is sampled from the policy (equations 3 and 5).
        """
        encoded = self.encoding(batch.next_observation)
        action, log_density = squashed_gaussian.sample(self.policy(actor, encoded), batch.noise[0])
        return bootstrap_target(
            batch, self.values(targets, encoded, action).amin(0) - temperature * log_density
        )

    def critic_loss(
        self, critics: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the sum of both critics' losses [] (equation 5).

        The second result holds the mean value [] and the absolute errors [N], averaged over both
        critics.
        """
        value = self.values(critics, self.encoding(batch.observation), batch.action)
        error = value - td_targets
        return 0.5 * (error.square() * batch.weight).mean(-1).sum(), (
            value.mean(),
            error.abs().mean(0),
        )

    def actor_loss(
        self, actor: Parameters, critics: Parameters, temperature: Tensor, batch: ReplayBatch
    ) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the mean of alpha log pi(a|s) - min Q(s, a) [] with a = f(noise; s) (equation 9).

        The second result holds the mean of log pi [].
        """
        encoded = self.encoding(batch.observation)
        action, log_density = squashed_gaussian.sample(self.policy(actor, encoded), batch.noise[1])
        value = self.values(critics, encoded, action).amin(0)
        return (temperature * log_density - value).mean(), (log_density.mean(),)

    def temperature_gradient(self, temperature: Tensor, log_density: Tensor) -> Tensor:
        """Returns the derivative [] of the temperature's objective with respect to log alpha.

        The objective is J(alpha) = E[-alpha (log pi + target entropy)] (equation 18).
        """
        return -temperature * (log_density + self.target_entropy)

    def update(
        self, gradient: Gradient, state: SacState, batch: ReplayBatch
    ) -> UpdateResult[SacState]:
        """Makes one update of critics, policy, temperature and targets (algorithm 1)."""
        actor, critic, temperature = (
            self.layouts["actor"].split,
            self.layouts["critics"].split,
            state.log_temperature.exp(),
        )
        wanted = self.td_targets(
            actor(state.actor), critic(state.critic_targets), temperature, batch
        )
        grad, critic_loss, (value, error) = gradient(
            lambda theta: self.critic_loss(critic(theta), batch, wanted), state.critics
        )
        norm = torch.linalg.vector_norm(grad)
        critics, critic_optimizer = adam(state.critics, grad, state.critic_optimizer)
        fixed = critic(critics)
        grad, actor_loss, (log_density,) = gradient(
            lambda phi: self.actor_loss(actor(phi), fixed, temperature, batch), state.actor
        )
        policy, actor_optimizer = adam(state.actor, grad, state.actor_optimizer)
        log_temperature, temperature_optimizer = state.log_temperature, state.temperature_optimizer
        if self.hyper.learn_temperature:
            grad = self.temperature_gradient(temperature, log_density)
            log_temperature, temperature_optimizer = adam(
                log_temperature, grad, temperature_optimizer
            )
        targets = torch.lerp(state.critic_targets, critics, self.hyper.tau)
        optimizers = actor_optimizer, critic_optimizer, temperature_optimizer
        report = torch.stack((critic_loss, actor_loss, value, -log_density, temperature, norm))
        return UpdateResult(
            SacState(policy, critics, targets, log_temperature, *optimizers), report, error
        )

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns two arrays of standard normal numbers, float32 [*shape, A] each.

        The first is for the next actions in the targets, the second for the actions in the policy's
        loss.
        """
        drawn = generator.standard_normal((2, *shape, self.policy.outputs // 2), dtype=np.float32)
        return drawn[0], drawn[1]

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the standard normal numbers of exploring actions, float32 [count, A]."""
        return (generator.standard_normal((count, self.policy.outputs // 2), dtype=np.float32),)

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns actions float32 [N, A] drawn from the policy, or without noise its mode."""
        outputs = self.policy(parameters, self.encoding(observation))
        return (
            squashed_gaussian.sample(outputs, noise[0])[0]
            if noise
            else squashed_gaussian.mode(outputs)
        )

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy, float32 [..., A]."""
        outputs = self.policy.forward_numpy(parameters, self.encoding.forward_numpy(observation))
        return squashed_gaussian.act_arrays(outputs, noise[0] if noise else None)


def build(parameters: SacParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions, encoding = (
        box_actions(context.action_space, "sac"),
        encoding_of(context.observation_space),
    )
    size, hidden = actions.raw_shape[0], parameters.hidden_sizes
    policy = Mlp("policy", (encoding.size, *hidden, 2 * size), parameters.activation)
    critics = Ensemble("q", 2, (encoding.size + size, *hidden, 1), parameters.activation)
    layouts = actor_critic_layouts(policy, critics)
    target_entropy = (
        -float(size) if parameters.target_entropy is None else parameters.target_entropy
    )
    return build_continuous(
        Sac(policy, critics, encoding, layouts, target_entropy, parameters),
        parameters,
        context,
        actions,
        GreedyExplorer(),
    )
