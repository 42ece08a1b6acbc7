"""Deep Q-network (Mnih et al. 2015) with double Q-learning (van Hasselt, Guez & Silver 2016).

N samples of a batch, A actions, P parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import huber_loss, mse_loss

from palestra.contract.agents import DqnParameters
from workers.agents.actions import discrete_actions
from workers.agents.adam import AdamState, adam, adam_start, clip_to_norm
from workers.agents.gradients import Gradient
from workers.agents.replay import Batch, ReplayAgent, ReplayParts, Updated, bootstrapped
from workers.agents.state import Layouts
from workers.core.rng import derive_generator
from workers.core.types import AgentContext, Array, LearnSchedule
from workers.explorers.epsilon import LinearEpsilonGreedy
from workers.memory.replay import Replay
from workers.memory.rules import Uniform
from workers.memory.transitions import ReplaySpec
from workers.networks.encoding import Encoding, encoding_of
from workers.networks.layout import Layout, Parameters
from workers.networks.mlp import Mlp


class DqnState(NamedTuple):
    """What an update replaces."""

    parameters: Tensor
    """float32 [P]: theta."""
    targets: Tensor
    """float32 [P]: theta of the target network."""
    optimizer: AdamState


@dataclass(frozen=True)
class Dqn:
    """The mathematics of one definition."""

    network: Mlp
    encoding: Encoding
    layout: Layout
    hyper: DqnParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/td", "q/mean", "gradient/norm")
    actor: ClassVar[str] = "parameters"

    @property
    def layouts(self) -> Layouts:
        """Of both networks."""
        return {"parameters": self.layout, "targets": self.layout}

    def start(self, generator: torch.Generator) -> DqnState:
        """Returns the state before the first update."""
        vector = self.layout.join(self.network.initial_uniform(generator))
        return DqnState(vector, vector, adam_start(vector, self.hyper.learning_rate))

    def values(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns Q float32 [N, A]."""
        return self.network(parameters, self.encoding(observation))

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: Batch) -> Tensor:
        """Returns r + gamma Q_target(s', a') float32 [N].

        a' is the best action by the target network (Mnih et al., algorithm 1), or by the online one (van Hasselt et al., equation 4).
        """
        next_values = self.values(targets, batch.next_observation)
        if self.hyper.double:
            best = self.values(parameters, batch.next_observation).argmax(1)
            value = next_values.gather(1, best.unsqueeze(1)).squeeze(1)
        else:
            value = next_values.amax(1)
        return bootstrapped(batch, value)

    def loss(self, parameters: Parameters, batch: Batch, td_targets: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the mean weighted loss on the temporal-difference error []; the mean value of the actions taken [], the errors [N]."""
        value = self.values(parameters, batch.observation).gather(1, batch.action.unsqueeze(1)).squeeze(1)
        error = huber_loss if self.hyper.loss == "huber" else mse_loss
        each = error(value, td_targets, reduction="none")
        return (each * batch.weight).mean(), (value.mean(), (value - td_targets).abs())

    def update(self, gradient: Gradient, state: DqnState, batch: Batch) -> Updated[DqnState]:
        """Makes a gradient step, and copies the online network to the target network after every so many of them."""
        split = self.layout.split
        td_targets = self.td_targets(split(state.parameters), split(state.targets), batch)
        slope, loss, (value, error) = gradient(lambda vector: self.loss(split(vector), batch, td_targets), state.parameters)
        slope, norm = clip_to_norm(slope, self.hyper.max_grad_norm)
        parameters, optimizer = adam(state.parameters, slope, state.optimizer)
        copied = optimizer.step % self.hyper.target_update_every == 0
        targets = torch.where(copied, parameters, state.targets)
        return Updated(DqnState(parameters, targets, optimizer), torch.stack((loss, value, norm)), error)

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns nothing."""
        del generator, shape
        return ()

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns nothing."""
        del generator, count
        return ()

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the actions int64 [N] of highest value."""
        del noise
        return self.values(parameters, observation).argmax(1)

    def act_arrays(self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]) -> Array | None:
        """Returns the actions int64 [N] of highest value."""
        del noise
        actions: Array = self.network.forward_numpy(parameters, self.encoding.forward_numpy(observation)).argmax(-1)
        return actions


def build(parameters: DqnParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if a space does not fit."""
    actions, encoding, seed = discrete_actions(context.action_space, "dqn"), encoding_of(context.observation_space), context.seed
    network = Mlp("q", (encoding.size, *parameters.hidden_sizes, actions.count), parameters.activation)
    explorer = LinearEpsilonGreedy(
        start=parameters.epsilon_start,
        end=parameters.epsilon_end,
        decay_steps=parameters.epsilon_decay_steps,
        actions=actions.count,
        generator=derive_generator(seed, "agent/explore"),
    )
    spec = ReplaySpec(
        capacity=parameters.buffer_size,
        num_envs=context.num_envs,
        observation=(encoding.shape, encoding.dtype),
        action=(actions.raw_shape, actions.raw_dtype),
        gamma=parameters.gamma,
    )
    return ReplayAgent(
        ReplayParts(
            algorithm=Dqn(network, encoding, Layout(network.shapes()), parameters),
            actions=actions,
            memory=Replay(spec, Uniform(derive_generator(seed, "agent/sample"))),
            explorer=explorer,
            schedule=LearnSchedule(parameters.train_every, parameters.updates_per_train, parameters.learning_starts),
            batch_size=parameters.batch_size,
            learning_rate=parameters.learning_rate,
        ),
        context,
    )
