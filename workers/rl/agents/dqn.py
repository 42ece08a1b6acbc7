"""Deep Q-network with double Q-learning.

Mnih et al. 2015; van Hasselt, Guez & Silver 2016.

Read in this order: this module (targets and loss), `common/q_learning.py` (state, gradient step,
copies to the target network, assembly), `shells/replay_agent.py` (acting, storing, sampling). Below
them are library pieces: `networks/action_values.py` has the networks, `common/optimizers.py` Adam,
`memory/` the replay memories, `exploration/epsilon_greedy.py` the random actions, and
`workers.acceleration.update_runner` runs an update eagerly or compiled.

Optional: dueling streams (Wang et al. 2016) and noisy layers (Fortunato et al. 2018), both in the
network; n-step returns (Sutton 1988) and prioritized replay (Schaul et al. 2016), both in the
memory. N samples of a batch, A actions, P parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import huber_loss, mse_loss

from palestra.contract.agents import DqnParameters
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.action_encoding import discrete_actions
from workers.rl.agents.common.algorithm import ReplayBatch, bootstrap_target
from workers.rl.agents.common.q_learning import QLearning, build_q_learning, value_network
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.networks.action_values import ActionValues
from workers.rl.networks.parameter_layout import Parameters


@dataclass(frozen=True)
class Dqn(QLearning):
    """Targets and loss of DQN for one definition, as pure functions."""

    network: ActionValues
    hyper: DqnParameters
    report_names: ClassVar[tuple[str, ...]] = ("loss/td", "q/mean", "gradient/norm")

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: ReplayBatch) -> Tensor:
        """Returns r + gamma Q_target(s', a') float32 [N].

        a' is the best action by the target network (Mnih et al., algorithm 1), or with double
        Q-learning by the online network (van Hasselt et al., equation 4).
        """
        _, of_target, of_choice = batch.noise or (None, None, None)
        next_values = self.network(targets, batch.next_observation, of_target)
        if self.hyper.double:
            best = self.network(parameters, batch.next_observation, of_choice).argmax(1)
            value = next_values.gather(1, best.unsqueeze(1)).squeeze(1)
        else:
            value = next_values.amax(1)
        return bootstrap_target(batch, value)

    def loss(
        self, parameters: Parameters, batch: ReplayBatch, td_targets: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the mean weighted loss on the temporal-difference error [].

        The second result holds the mean value of the actions taken [] and the errors [N].
        """
        values = self.network(
            parameters, batch.observation, batch.noise[0] if batch.noise else None
        )
        value = values.gather(1, batch.action.unsqueeze(1)).squeeze(1)
        error = huber_loss if self.hyper.loss == "huber" else mse_loss
        each = error(value, td_targets, reduction="none")
        return (each * batch.weight).mean(), (value.mean(), (value - td_targets).abs())

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns the actions int64 [N] of highest value."""
        return self.network(parameters, observation, *noise).argmax(1)

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy; returns `None` for networks with convolutions."""
        values = self.network.forward_numpy(parameters, observation, *noise)
        return None if values is None else values.argmax(-1)


def build(parameters: DqnParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions = discrete_actions(context.action_space, "dqn")
    algorithm = Dqn(value_network(parameters, actions, context), parameters)
    return build_q_learning(algorithm, parameters, actions, context, hindsight=parameters.hindsight)
