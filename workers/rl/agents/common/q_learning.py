"""Common parts of algorithms that learn action values.

They are the learning state, a gradient step, and network, explorer, schedule and memory of a
definition.

N samples of a batch, A actions, P parameters. Each algorithm is a subclass of `QLearning` in a
module of `workers.rl.agents` with the algorithm's name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents.common import HindsightReplay
from palestra.contract.agents.q_learning import (
    C51Parameters,
    DqnParameters,
    IqnParameters,
    QLearningParameters,
    QrDqnParameters,
)
from workers.acceleration.update_runner import Gradient
from workers.core.rng import derive_generator
from workers.core.types import AgentContext, Array, LearnSchedule
from workers.rl.agents.common.action_encoding import DiscreteActions
from workers.rl.agents.common.algorithm import Algorithm, UpdateCycle, UpdateResult
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.optimizers import AdamState, adam, adam_start, clip_to_norm
from workers.rl.agents.common.replay_memory import replay_memory
from workers.rl.agents.shells.replay_agent import ReplayAgent, ReplayParts
from workers.rl.exploration.epsilon_greedy import LinearEpsilonGreedy
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule
from workers.rl.networks.action_values import ActionValues, make_action_values
from workers.rl.networks.parameter_layout import Layout, Parameters


class QState(NamedTuple):
    """Learning state of Q-learning algorithms; an update returns a new one."""

    parameters: Tensor
    """float32 [P]: theta."""
    targets: Tensor
    """float32 [P]: theta of the target network."""
    optimizer: AdamState


@dataclass(frozen=True)
class QLearning(UpdateCycle, ABC):
    """Base of the algorithms; subclasses define targets (`td_targets`) and `loss`."""

    network: Any
    hyper: Any
    layout: Layout = field(init=False)
    actor: ClassVar[str] = "parameters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.network.shapes()))

    @property
    def layouts(self) -> Layouts:
        """Layouts of the parameters of online and target network."""
        return {"parameters": self.layout, "targets": self.layout}

    def start(self, generator: torch.Generator) -> QState:
        """Returns the state before the first update."""
        vector = self.layout.join(self.network.draw_uniform(generator))
        return QState(vector, vector, adam_start(vector, self.hyper.learning_rate))

    @abstractmethod
    def td_targets(self, parameters: Parameters, targets: Parameters, batch: Any) -> Tensor:
        """Returns the targets of the loss, [N, ...]; no gradient is computed for them."""

    @abstractmethod
    def loss(
        self, parameters: Parameters, batch: Any, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the loss [].

        The second result holds the mean value of the actions taken [] and the size of each sample's
        error [N].
        """

    def update(self, gradient: Gradient, state: QState, batch: object) -> UpdateResult[QState]:
        """Makes one gradient step on the loss."""
        split = self.layout.split
        td_targets = self.td_targets(split(state.parameters), split(state.targets), batch)
        grad, loss, (value, error) = gradient(
            lambda theta: self.loss(split(theta), batch, td_targets), state.parameters
        )
        grad, norm = clip_to_norm(grad, self.hyper.max_grad_norm)
        parameters, optimizer = adam(
            state.parameters, grad, state.optimizer, epsilon=self.hyper.adam_epsilon
        )
        return UpdateResult(
            QState(parameters, state.targets, optimizer), torch.stack((loss, value, norm)), error
        )

    def copy_targets(self, state: QState, updates: int) -> QState:
        """Copies the online network to the target network every `target_update_every` updates."""
        return (
            state._replace(targets=state.parameters)
            if updates % self.hyper.target_update_every == 0
            else state
        )

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns the noise of an update: three arrays float32 [updates, noise_size].

        They are epsilon of the online network, epsilon' of the target network, and epsilon'' of the
        online network when it chooses the next action, drawn for each update (Fortunato et al.
        2018, equations 13 to 16). Without noisy layers the tuple is empty.
        """
        size = self.network.noise_size
        return tuple(generator.standard_normal((3, shape[0], size), np.float32)) if size else ()

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the noise of acting with noisy layers, float32 [count, noise_size].

        Each environment has separate noise. Without noisy layers the tuple is empty.
        """
        size = self.network.noise_size
        return (generator.standard_normal((count, size), np.float32),) if size else ()


def gather_actions(values: Tensor, action: Tensor) -> Tensor:
    """Returns values[n, action[n]] [N, ...] of values [N, A, ...] and actions int64 [N]."""
    index = action.reshape(-1, *[1] * (values.dim() - 1)).expand(-1, 1, *values.shape[2:])
    return values.gather(1, index).squeeze(1)


def value_network(
    hyper: DqnParameters | C51Parameters | QrDqnParameters,
    actions: DiscreteActions,
    context: AgentContext,
    *,
    atoms: int | None = None,
) -> ActionValues:
    """Returns the network of a definition, with its dueling streams and noisy layers.

    Args:
        hyper: The definition's parameters.
        actions: Its actions, A.
        context: Has the observation space.
        atoms: Outputs per action, K: the network computes [N, A, K]. `None` for values [N, A].

    Raises:
        DefinitionError: If the built-in networks cannot read the observation space.
    """
    return make_action_values(
        context.observation_space,
        actions.count,
        hidden=hyper.hidden_sizes,
        activation=hyper.activation,
        is_dueling=hyper.dueling,
        is_noisy=hyper.noisy,
        atoms=atoms,
    )


def build_q_learning(
    algorithm: Algorithm[Any],
    hyper: DqnParameters | C51Parameters | IqnParameters | QrDqnParameters,
    actions: DiscreteActions,
    context: AgentContext,
    *,
    hindsight: HindsightReplay | None = None,
) -> ReplayAgent:
    """Returns an agent with the algorithm and a new memory of n-step transitions.

    Raises:
        DefinitionError: If `hindsight` is given and the environment's observations have no goals.
    """
    memory = replay_memory(
        hyper,
        actions,
        context,
        n_step=hyper.n_step,
        prioritized=hyper.prioritized,
        hindsight=hindsight,
    )
    return ReplayAgent(replay_parts(algorithm, hyper, actions, memory, context), context)


def replay_parts(
    algorithm: Algorithm[Any],
    hyper: QLearningParameters,
    actions: DiscreteActions,
    memory: Replay,
    context: AgentContext,
) -> ReplayParts:
    """Returns the parts of a `ReplayAgent`, with a linear epsilon-greedy explorer."""
    explorer = LinearEpsilonGreedy(
        start=hyper.epsilon_start,
        end=hyper.epsilon_end,
        decay_steps=hyper.epsilon_decay_steps,
        actions=actions.count,
        generator=derive_generator(context.seed, "agent/explore"),
    )
    return ReplayParts(
        algorithm=algorithm,
        actions=actions,
        memory=memory,
        explorer=explorer,
        schedule=LearnSchedule(hyper.train_every, hyper.updates_per_train, hyper.learning_starts),
        batch_size=hyper.batch_size,
        learning_rate=hyper.learning_rate,
        is_prioritized=isinstance(memory.rule, PrioritizedRule),
    )
