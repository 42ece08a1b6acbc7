"""Rainbow (Hessel et al. 2018, "Rainbow: Combining Improvements in Deep Reinforcement Learning").

It combines six extensions of the deep Q-network, which are implemented in these modules:

- the distribution of returns instead of their mean: `workers.rl.agents.c51` (Bellemare et al.
  2017);
- double Q-learning: the online network chooses a*, the target network computes the distribution of
  a* (`CategoricalDqn.td_targets`);
- dueling streams, combined for each atom: `workers.rl.networks.dueling`;
- noisy layers in both streams: `workers.rl.networks.noisy`;
- returns over n steps: the target is R_t^(n) + gamma^n z (`workers.rl.memory.replay`);
- prioritized replay, p proportional to the Kullback-Leibler divergence D(Phi d' || d):
  `workers.rl.memory.sampling_rules`, `CategoricalDqn.loss`.
"""

from palestra.contract.agents import C51Parameters, RainbowParameters
from workers.core.types import AgentContext
from workers.rl.agents.c51 import build_categorical
from workers.rl.agents.common.action_encoding import discrete_actions
from workers.rl.agents.shells.replay_agent import ReplayAgent


def build(parameters: RainbowParameters, context: AgentContext) -> ReplayAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    actions = discrete_actions(context.action_space, "rainbow")
    shared = {
        name: getattr(parameters, name) for name in RainbowParameters.model_fields if name != "name"
    }
    return build_categorical(
        C51Parameters(**shared, double=True, dueling=True, noisy=True), actions, context
    )
