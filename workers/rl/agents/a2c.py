"""Advantage actor-critic, the synchronous form of A3C.

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", algorithm S3 with
environments that step together.

N transitions of a rollout, P parameters.
"""

from typing import ClassVar

import torch
from torch import Tensor

from palestra.contract.agents import A2cParameters
from workers.core.types import AgentContext
from workers.rl.agents.common.actor_critic import actor_critic
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import PolicyGradient, RolloutBatch, standardise
from workers.rl.agents.common.optimizers import RmspropState, rmsprop, rmsprop_start
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts
from workers.rl.networks.parameter_layout import Parameters


class A2c(PolicyGradient[A2cParameters]):
    """Loss and RMSprop step of A2C for one definition, as pure functions."""

    report_names: ClassVar[tuple[str, ...]] = (
        "loss/total",
        "loss/policy",
        "loss/value",
        "policy/entropy",
        "gradient/norm",
    )
    reads_log_probability: ClassVar[bool] = False

    def optimizer_start(self, vector: Tensor) -> RmspropState:
        """Returns the state of RMSprop before the first update of parameters [P]."""
        hyper = self.hyper
        return rmsprop_start(vector, hyper.learning_rate, uses_inner_epsilon=hyper.epsilon_inside)

    def optimizer_step(
        self, parameters: Tensor, grad: Tensor, optimizer: RmspropState
    ) -> tuple[Tensor, RmspropState]:
        """Returns parameters [P] and RMSprop's state after a step with the gradient [P]."""
        hyper = self.hyper
        settings = {"decay": hyper.rmsprop_decay, "epsilon": hyper.rmsprop_epsilon}
        return rmsprop(
            parameters, grad, optimizer, uses_inner_epsilon=hyper.epsilon_inside, **settings
        )

    def loss(self, parameters: Parameters, batch: RolloutBatch) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the loss [], and the values of `report_names` except the last [4].

        The loss is the sum of policy loss, weighted value loss and weighted negative entropy.

        The policy loss is the mean of -log pi(a|s) (R - V(s)) (section 4) with n-step returns R.
        """
        hyper, policy, advantage = self.hyper, self.model.policy, batch.advantage
        if hyper.normalize_advantages:
            advantage = standardise(advantage)
        outputs, value = self.model(parameters, batch.observation)
        policy_loss = -(
            policy.log_probability(parameters, outputs, batch.action) * advantage
        ).mean()
        value_loss = (value - batch.value_target).square().mean()
        entropy = policy.entropy(parameters, outputs).mean()
        total = (
            policy_loss + hyper.value_coefficient * value_loss - hyper.entropy_coefficient * entropy
        )
        return total, (torch.stack((total, policy_loss, value_loss, entropy)).detach(),)


def build(parameters: A2cParameters, context: AgentContext) -> RolloutAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    model = actor_critic(context, "a2c", parameters.hidden_sizes, parameters.activation)
    return RolloutAgent(
        RolloutParts(
            algorithm=A2c(model, parameters, parameters.gamma, parameters.gae_lambda),
            learning_rate=parameters.learning_rate,
            vector_steps=parameters.rollout_steps,
            normalisers=Normalisers(parameters, context),
        ),
        context,
    )
