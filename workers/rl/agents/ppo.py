"""Proximal policy optimisation with a clipped objective (Schulman et al. 2017).

Read in this order: this module (the clipped loss), `common/on_policy.py` (generalised advantages,
how a rollout becomes a batch, and the gradient step `PolicyGradient.update`),
`shells/rollout_agent.py` (acting, the rollout, passes over minibatches). Below them are library
pieces: `common/actor_critic.py` has the networks, `common/policies.py` the distributions of
actions, `common/optimizers.py` Adam and the clipping of gradients, `shells/learning.py` the state
that an update replaces, and `workers.acceleration.update_runner` runs an update eagerly or
compiled.

N transitions of a batch, P parameters.
"""

from typing import ClassVar, Final

import torch
from torch import Tensor

from palestra.contract.agents import PpoParameters, RecurrentPpoParameters
from workers.core.types import AgentContext
from workers.rl.agents.common.actor_critic import actor_critic
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import PolicyGradient, RolloutBatch, standardise
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts
from workers.rl.networks.parameter_layout import Parameters

REPORT_NAMES: Final = (
    "loss/total",
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/kl",
    "policy/clip_fraction",
    "gradient/norm",
)
ADAM_EPSILON: Final = 1e-5
"""Adam's epsilon, as in the reference implementation of the paper."""


def clipped_loss(
    hyper: PpoParameters | RecurrentPpoParameters,
    batch: RolloutBatch,
    log_probability: Tensor,
    value: Tensor,
    entropy: Tensor,
) -> tuple[Tensor, Tensor]:
    """Returns the loss [] and the first values of `REPORT_NAMES` [6], means over all samples.

    The loss is the negative of equation 9. The value loss is the squared error without a factor of
    one half, as in equation 9, Stable-Baselines3, PFRL and tianshou.

    Args:
        hyper: Clipping range (epsilon) and coefficients (c1, c2).
        batch: Transitions; its tensors may have further dimensions, if all have the same shape.
        log_probability: Log-probabilities of the batch's actions under the current policy, in the
            shape of `batch.log_probability`.
        value: V of the batch's observations by the current parameters, in the same shape.
        entropy: Entropies of the current policy at the observations, in the same shape.
    """
    advantage = batch.advantage
    if hyper.normalize_advantages:
        advantage = standardise(advantage)
    log_ratio = log_probability - batch.log_probability
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - hyper.clip_range, 1 + hyper.clip_range)
    # The policy loss is the negative of equation 7.
    policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
    value_loss = (value - batch.value_target).square().mean()
    total = (
        policy_loss
        + hyper.value_coefficient * value_loss
        - hyper.entropy_coefficient * entropy.mean()
    )
    # This estimate is never negative: http://joschu.net/blog/kl-approx.html.
    kl = (ratio - 1 - log_ratio).mean()
    fraction = ((ratio - 1).abs() > hyper.clip_range).float().mean()
    return total, torch.stack(
        (total, policy_loss, value_loss, entropy.mean(), kl, fraction)
    ).detach()


class Ppo(PolicyGradient[PpoParameters]):
    """Loss of PPO for one definition, as a pure function."""

    report_names: ClassVar[tuple[str, ...]] = REPORT_NAMES
    adam_epsilon: ClassVar[float] = ADAM_EPSILON

    def loss(self, parameters: Parameters, batch: RolloutBatch) -> tuple[Tensor, tuple[Tensor]]:
        """Returns PPO's loss [], and the values of `REPORT_NAMES` except the last [6].

        The loss is the clipped surrogate loss plus value loss minus entropy bonus.
        """
        policy = self.model.policy
        outputs, value = self.model(parameters, batch.observation)
        log_probability, entropy = (
            policy.log_probability(parameters, outputs, batch.action),
            policy.entropy(parameters, outputs),
        )
        total, report = clipped_loss(self.hyper, batch, log_probability, value, entropy)
        return total, (report,)


def build(parameters: PpoParameters, context: AgentContext) -> RolloutAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    model = actor_critic(context, "ppo", parameters.hidden_sizes, parameters.activation)
    return RolloutAgent(
        RolloutParts(
            algorithm=Ppo(model, parameters, parameters.gamma, parameters.gae_lambda),
            learning_rate=parameters.learning_rate,
            vector_steps=parameters.rollout_steps,
            passes=parameters.passes,
            minibatch_size=parameters.minibatch_size,
            target_kl=parameters.target_kl,
            normalisers=Normalisers(parameters, context),
        ),
        context,
    )
