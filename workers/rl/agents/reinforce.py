"""REINFORCE: the policy gradient on whole episodes (Williams 1992).

It uses returns to go and, optionally, a learned baseline.

N transitions of a rollout, P parameters.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import ReinforceParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.actor_critic import actor_critic
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import (
    PolicyGradient,
    RolloutBatch,
    complete_episode_mask,
    discounted_sums,
    standardise,
)
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts
from workers.rl.networks.parameter_layout import Parameters


class Reinforce(PolicyGradient[ReinforceParameters]):
    """Batches and loss of REINFORCE for one definition, as pure functions."""

    report_names: ClassVar[tuple[str, ...]] = (
        "loss/total",
        "loss/policy",
        "loss/value",
        "policy/entropy",
        "gradient/norm",
    )

    @property
    def estimates_values(self) -> bool:
        """Whether there is a learned baseline."""
        return self.hyper.baseline

    def prepare(
        self, state: Any, rollout: Mapping[str, Array], members: int | None = None
    ) -> RolloutBatch:
        """Returns the transitions of the episodes that ended, with their returns to go.

        A truncated episode is treated as if it had terminated.
        """
        assert members is None, "rollouts of whole episodes cannot be packed"
        active = rollout["active"]
        ended = (rollout["terminated"] | rollout["truncated"]) & active
        returns = discounted_sums(rollout["reward"] * active, ended | ~active, self.gamma)
        wanted = np.flatnonzero(active & complete_episode_mask(ended))
        columns = (
            np.take(array.reshape(-1, *array.shape[2:]), wanted, 0)
            for array in (rollout["observation"], rollout["action"], returns)
        )
        observation, action, returned = (
            torch.from_numpy(column).to(state.parameters.device) for column in columns
        )
        value = torch.zeros_like(returned)
        if self.hyper.baseline:
            with torch.no_grad():
                value = self.model.values(self.parameters_by_name(state), observation)
        return RolloutBatch(
            observation, action, torch.zeros_like(returned), returned - value, returned
        )

    def loss(self, parameters: Parameters, batch: RolloutBatch) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the loss [], and the values of `report_names` except the last [4].

        The gradient of the policy loss is -(r - b) d ln pi / d theta (Williams, section 4).
        """
        hyper, policy, weight = self.hyper, self.model.policy, batch.advantage
        if hyper.normalize_advantages:
            weight = standardise(weight)
        outputs, value = self.model(parameters, batch.observation)
        policy_loss = -(policy.log_probability(parameters, outputs, batch.action) * weight).mean()
        value_loss = (value - batch.value_target).square().mean()
        entropy = policy.entropy(parameters, outputs).mean()
        total = policy_loss - hyper.entropy_coefficient * entropy
        if hyper.baseline:
            total = total + hyper.value_coefficient * value_loss
        return total, (torch.stack((total, policy_loss, value_loss, entropy)).detach(),)


def build(parameters: ReinforceParameters, context: AgentContext) -> RolloutAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    model = actor_critic(context, "reinforce", parameters.hidden_sizes, parameters.activation)
    return RolloutAgent(
        RolloutParts(
            algorithm=Reinforce(model, parameters, parameters.gamma, 1.0),
            learning_rate=parameters.learning_rate,
            episodes=parameters.episodes,
            normalisers=Normalisers(parameters, context),
        ),
        context,
    )
