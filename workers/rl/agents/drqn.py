"""Deep recurrent Q-network (DRQN).

Hausknecht & Stone 2015, "Deep Recurrent Q-Learning for Partially Observable MDPs".

Sequences begin at random places with a state of zeros (section 4.2, "bootstrapped random updates").
Optionally the first steps of a sequence only compute the state, without a gradient, and the loss is
over the other steps (burn-in: Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed
Reinforcement Learning", section 3). N sequences of a batch, L steps, A actions, S numbers of a
recurrent state.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from torch import Tensor
from torch.nn.functional import huber_loss, mse_loss

from palestra.contract.agents import DrqnParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import discrete_actions
from workers.rl.agents.common.algorithm import ReplayBatch, bootstrap_target
from workers.rl.agents.common.q_learning import QLearning, replay_parts
from workers.rl.agents.common.replay_memory import replay_memory
from workers.rl.agents.shells.recurrent import RecurrentActing
from workers.rl.agents.shells.replay_agent import ReplayAgent, ReplayParts, SampledBatch
from workers.rl.networks.action_values import TorsoNetwork, make_torso
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.parameter_layout import Parameters
from workers.rl.networks.recurrent import RecurrentLayer


@dataclass(frozen=True)
class RecurrentValues(TorsoNetwork):
    """A torso for each observation, a recurrent layer, and a linear layer for the values."""

    memory: RecurrentLayer
    head: Mlp
    noise_size: ClassVar[int] = 0

    @property
    def parts(self) -> tuple[Any, ...]:
        """Torso, recurrent layer and head."""
        return (self.torso, self.memory, self.head)

    def step(
        self, parameters: Parameters, observation: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns values [N, A] and new states [N, S] for observations and states [N, S]."""
        output, after = self.memory(parameters, self.features(parameters, observation), state)
        return self.head(parameters, output), after

    def values(self, parameters: Parameters, states: Tensor) -> Tensor:
        """Returns the values [..., A] for states [..., S], which include the newest observation."""
        return self.head(parameters, states[..., : self.memory.units])


class DrqnBatch(NamedTuple):
    """A batch of N sequences of L consecutive steps of one environment each, [L, N, ...]."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    discount: Tensor
    """float32: discount of the value of `next_observation`; 0 if the episode terminated."""
    begins: Tensor
    """bool: an episode begins with this step."""
    weight: Tensor
    """float32: 1, or 0 where the entry is padding."""

    def drop_first(self, steps: int) -> "DrqnBatch":
        """Returns the sequences without their first `steps` steps."""
        return DrqnBatch(*(column[steps:] for column in self))


@dataclass(frozen=True)
class Drqn(QLearning):
    """Targets and loss of DRQN for one definition, as pure functions."""

    network: RecurrentValues
    hyper: DrqnParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/td", "q/mean", "gradient/norm")

    def states(self, parameters: Parameters, batch: DrqnBatch) -> Tensor:
        """Returns the states [L - burn-in, N, S] after each step that follows the burn-in.

        No gradient is propagated through the burn-in steps.
        """
        network, warm = self.network, self.hyper.burn_in
        length, count = batch.action.shape
        inputs = network.features(parameters, batch.observation.flatten(0, 1)).reshape(
            length, count, -1
        )
        state = network.memory.initial_state(count, inputs.device)
        if warm:
            state = network.memory.states(parameters, inputs[:warm], state, batch.begins[:warm])[
                -1
            ].detach()
        return network.memory.states(parameters, inputs[warm:], state, batch.begins[warm:])

    def next_values(self, parameters: Parameters, batch: DrqnBatch) -> Tensor:
        """Returns the values of each step's successor, [L - burn-in, N, A].

        The successor is `next_observation`, which at the end of an episode is not the next
        observation of the sequence.
        """
        states = self.states(parameters, batch)
        successor = batch.next_observation[self.hyper.burn_in :].flatten(0, 1)
        values, _ = self.network.step(parameters, successor, states.flatten(0, 1))
        return values.reshape(*states.shape[:2], -1)

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: DrqnBatch) -> Tensor:
        """Returns r + gamma Q_target(h', s', a') float32 [L - burn-in, N].

        The action a' is the best one by the target network, or with double Q-learning by the online
        network.
        """
        next_values = self.next_values(targets, batch)
        best = (self.next_values(parameters, batch) if self.hyper.double else next_values).argmax(
            -1, keepdim=True
        )
        learnt = batch.drop_first(self.hyper.burn_in)
        return bootstrap_target(
            ReplayBatch(*learnt[:5], learnt.weight, ()), next_values.gather(-1, best).squeeze(-1)
        )

    def loss(
        self, parameters: Parameters, batch: DrqnBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the mean loss [] over the steps that are not padding.

        The second result holds the mean value of the actions taken [] and each sequence's mean
        absolute error [N].
        """
        learnt = batch.drop_first(self.hyper.burn_in)
        values = self.network.values(parameters, self.states(parameters, batch))
        value = values.gather(-1, learnt.action.unsqueeze(-1)).squeeze(-1)
        each = (huber_loss if self.hyper.loss == "huber" else mse_loss)(
            value, td_targets, reduction="none"
        )
        share = learnt.weight / learnt.weight.sum().clamp(min=1)
        return (each * share).sum(), (
            (value * share).sum(),
            ((value - td_targets).abs() * learnt.weight).mean(0),
        )

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the best actions int64 [N] for the first observations of episodes.

        `DrqnAgent.act` acts with the recurrent states of episodes in progress.
        """
        del noise
        state = self.network.memory.initial_state(observation.shape[0], observation.device)
        return self.network.step(parameters, observation, state)[0].argmax(-1)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Returns `None`: there is no numpy version."""
        del parameters, observation, noise
        return None


class DrqnAgent(RecurrentActing, ReplayAgent):
    """Acts with a recurrent state for each environment and learns from sequences.

    Args:
        parts: Memory, exploration and settings; the algorithm is a `Drqn`.
        context: Seed, device and number of environments.
    """

    def __init__(self, parts: ReplayParts, context: AgentContext) -> None:
        super().__init__(parts, context)
        self._drqn = cast("Drqn", parts.algorithm)
        self.create_states(self._drqn.network.memory.state_size, context.num_envs)

    def step(self, observation: Array, before: Array, *, explore: bool) -> tuple[Tensor, Tensor]:
        """Returns the best actions int64 [B] and the states [B, S] after this step."""
        del explore
        values, after = self._drqn.network.step(
            self.named_parameters(), self._tensor(observation), self._tensor(before)
        )
        return values.argmax(-1), after

    def batches(self, updates: int) -> Iterator[SampledBatch]:
        """Yields the batches of sequences of a call to `learn`; see `ReplayAgent.batches`."""
        size, length = self.parts.batch_size, self._drqn.hyper.sequence_length
        if not self._training.is_on or len(self.memory) < size:
            return
        for _ in range(updates):
            sample = self.memory.sample_sequences(1, size, length)
            columns = (
                self._tensor(column[0]).transpose(0, 1)
                for column in (*sample[:6], sample.valid.astype(np.float32))
            )
            batch: Any = DrqnBatch(*columns)
            yield SampledBatch(batch, np.zeros(0, np.int64))


def build(parameters: DrqnParameters, context: AgentContext) -> DrqnAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions = discrete_actions(context.action_space, "drqn")
    encoding, torso = make_torso(
        context.observation_space, parameters.hidden_sizes, parameters.activation
    )
    memory = RecurrentLayer("memory", torso.outputs, parameters.memory_units, parameters.cell)
    network = RecurrentValues(encoding, torso, memory, Mlp("q", (memory.outputs, actions.count)))
    # The type is `Any` because the batches of this `Algorithm` are sequences.
    algorithm: Any = Drqn(network, parameters)
    stored = replay_memory(parameters, actions, context)
    return DrqnAgent(replay_parts(algorithm, parameters, actions, stored, context), context)
