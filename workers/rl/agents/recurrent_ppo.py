"""PPO with a recurrent layer.

Schulman et al. 2017; Hausknecht & Stone 2015 for acting on a recurrent state.

A minibatch holds the whole rollouts of some environments. The network is unrolled from the
recurrent state at the beginning of the rollout, where backpropagation through time is truncated. B
environments, T steps of a rollout, A outputs of the policy, S numbers of a recurrent state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import RecurrentPpoParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import (
    PolicyGradient,
    PolicyState,
    RolloutBatch,
    episode_ends,
    generalised_advantages,
)
from workers.rl.agents.common.policies import Policy, make_policy
from workers.rl.agents.ppo import ADAM_EPSILON, REPORT_NAMES, clipped_loss
from workers.rl.agents.shells.recurrent import RecurrentAgent
from workers.rl.agents.shells.rollout_agent import RolloutParts
from workers.rl.networks.action_values import TorsoNetwork, make_torso
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.parameter_layout import Layout, Parameters
from workers.rl.networks.recurrent import RecurrentLayer


class RecurrentPpoBatch(NamedTuple):
    """A minibatch: the rollouts of n environments."""

    observation: Tensor
    """[n, T, ...]"""
    action: Tensor
    """Raw [n, T, ...]"""
    log_probability: Tensor
    """float32 [n, T]: log-probability of the action by the policy that acted."""
    advantage: Tensor
    """float32 [n, T]"""
    value_target: Tensor
    """float32 [n, T]"""
    begins: Tensor
    """bool [n, T]: an episode begins with this step."""
    state: Tensor
    """float32 [n, S]: recurrent state before the first step."""
    noise: tuple[Tensor, ...] = ()

    def rows(self, places: Tensor) -> "RecurrentPpoBatch":
        """Returns the rollouts of the environments with indices `places`, int64 [k]."""
        observation, action, log_probability, advantage, target, begins, state = (
            column[places] for column in self[:7]
        )
        return RecurrentPpoBatch(
            observation, action, log_probability, advantage, target, begins, state
        )


@dataclass(frozen=True)
class RecurrentActorCritic(TorsoNetwork):
    """A network with a recurrent layer between the torso and the heads of policy and value."""

    policy: Policy
    memory: RecurrentLayer
    actor: Mlp
    critic: Mlp
    layout: Layout

    def initial_parameters(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial parameters: orthogonal weights, zero biases."""
        torso, actor = (
            self.torso.draw_orthogonal(generator, gain=2**0.5),
            self.actor.draw_orthogonal(generator, gain=0.01),
        )
        extra = {name: torch.zeros(shape) for name, shape in self.policy.extra_shapes.items()}
        return {
            **torso,
            **self.memory.draw_orthogonal(generator),
            **actor,
            **self.critic.draw_orthogonal(generator, gain=1.0),
            **extra,
        }

    def heads(self, parameters: Parameters, states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns outputs [N, A] and V [N] for states [N, S] that include the observation."""
        hidden = states[:, : self.memory.units]
        return self.actor(parameters, hidden), self.critic(parameters, hidden).squeeze(-1)

    def step(self, parameters: Parameters, observation: Tensor, state: Tensor) -> Tensor:
        """Returns the states [N, S] after observations [N, ...], given the states [N, S] before."""
        return self.memory(parameters, self.features(parameters, observation), state)[1]

    def states(self, parameters: Parameters, batch: RecurrentPpoBatch) -> Tensor:
        """Returns the states [n * T, S] after each step."""
        count, length = batch.begins.shape
        inputs = self.features(parameters, batch.observation.flatten(0, 1)).reshape(
            count, length, -1
        )
        states = self.memory.states(
            parameters, inputs.transpose(0, 1), batch.state, batch.begins.transpose(0, 1)
        )
        return states.transpose(0, 1).flatten(0, 1)


@dataclass(frozen=True)
class RecurrentPpo(PolicyGradient[RecurrentPpoParameters]):
    """Batches and loss of recurrent PPO for one definition, as pure functions."""

    model: RecurrentActorCritic  # type: ignore[assignment]
    report_names: ClassVar[tuple[str, ...]] = REPORT_NAMES
    adam_epsilon: ClassVar[float] = ADAM_EPSILON

    def prepare(  # type: ignore[override]
        self, state: PolicyState, rollout: Mapping[str, Array], members: int | None = None
    ) -> RecurrentPpoBatch:
        """Returns the rollouts of all environments with advantages and value targets.

        See `OnPolicyMath.prepare`.
        """
        assert members is None, "recurrent agents cannot be packed"
        parameters, device = self.model.layout.split(state.parameters), state.parameters.device
        ends = episode_ends(rollout)
        begins = np.concatenate((np.zeros_like(ends.ended[:1]), ends.ended[:-1]))
        columns = (
            np.ascontiguousarray(np.swapaxes(rollout[name], 0, 1))
            for name in ("observation", "action")
        )
        observation, action = (torch.from_numpy(column).to(device) for column in columns)
        marks, first = (
            torch.from_numpy(begins.T.copy()).to(device),
            torch.from_numpy(rollout["state"][0].copy()).to(device),
        )
        blank = torch.zeros(marks.shape, device=device)
        batch = RecurrentPpoBatch(observation, action, blank, blank, blank, marks, first)
        with torch.no_grad():
            states = self.model.states(parameters, batch)
            outputs, values = self.model.heads(parameters, states)
            log_probability = self.model.policy.log_probability(
                parameters, outputs, action.flatten(0, 1)
            ).view(marks.shape)
            kept = states.view(*marks.shape, -1).transpose(0, 1)[
                torch.from_numpy(ends.bootstrap_mask).to(device)
            ]
            successor = torch.from_numpy(rollout["next_observation"][ends.bootstrap_mask]).to(
                device
            )
            bootstrap = self.model.heads(parameters, self.model.step(parameters, successor, kept))[
                1
            ]
        value = np.ascontiguousarray(values.view(marks.shape).T.cpu().numpy())
        advantage = generalised_advantages(
            rollout["reward"],
            value,
            bootstrap.cpu().numpy(),
            ends,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
        )
        weights, targets = (
            torch.from_numpy(array.T.copy()).to(device) for array in (advantage, advantage + value)
        )
        return batch._replace(
            log_probability=log_probability, advantage=weights, value_target=targets
        )

    def loss(
        self, parameters: Parameters, batch: RecurrentPpoBatch
    ) -> tuple[Tensor, tuple[Tensor]]:
        """Returns PPO's loss [], and the values of `REPORT_NAMES` except the last [6]."""
        policy, shape = self.model.policy, batch.advantage.shape
        outputs, value = self.model.heads(parameters, self.model.states(parameters, batch))
        log_probability = policy.log_probability(
            parameters, outputs, batch.action.flatten(0, 1)
        ).view(shape)
        total, report = clipped_loss(
            self.hyper,
            RolloutBatch(*batch[:5]),
            log_probability,
            value.view(shape),
            policy.entropy(parameters, outputs),
        )
        return total, (report,)


def build(parameters: RecurrentPpoParameters, context: AgentContext) -> RecurrentAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    policy = make_policy(context.action_space, "recurrent_ppo")
    encoding, torso = make_torso(
        context.observation_space, parameters.hidden_sizes, parameters.activation
    )
    memory = RecurrentLayer("memory", torso.outputs, parameters.memory_units)
    actor, critic = (
        Mlp("policy", (memory.outputs, policy.outputs)),
        Mlp("value", (memory.outputs, 1)),
    )
    layout = Layout(
        {
            **torso.shapes(),
            **memory.shapes(),
            **actor.shapes(),
            **critic.shapes(),
            **policy.extra_shapes,
        }
    )
    algorithm = RecurrentPpo(
        RecurrentActorCritic(encoding, torso, policy, memory, actor, critic, layout),
        parameters,
        parameters.gamma,
        parameters.gae_lambda,
    )
    return RecurrentAgent(
        RolloutParts(
            algorithm=algorithm,
            learning_rate=parameters.learning_rate,
            vector_steps=parameters.rollout_steps,
            passes=parameters.passes,
            minibatch_size=parameters.minibatch_envs,
            has_whole_envs=True,
            is_compiled=False,
            target_kl=parameters.target_kl,
            normalisers=Normalisers(parameters, context),
        ),
        context,
    )
