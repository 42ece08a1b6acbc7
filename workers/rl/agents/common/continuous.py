"""Common parts of the agents for continuous actions with a replay memory.

N samples of a batch, A entries of an action.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from palestra.contract.agents.continuous import ContinuousParameters
from workers.core.rng import derive_generator
from workers.core.types import AgentContext, Array, LearnSchedule
from workers.rl.agents.common.action_encoding import BoxActions
from workers.rl.agents.common.algorithm import Algorithm, UpdateCycle
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.replay_memory import replay_memory
from workers.rl.agents.shells.replay_agent import ReplayAgent, ReplayParts
from workers.rl.exploration.additive_noise import AdditiveGaussian, AdditiveOrnsteinUhlenbeck
from workers.rl.exploration.explorer import Explorer
from workers.rl.networks.ensemble import Ensemble
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import Encoding
from workers.rl.networks.parameter_layout import Layout, Parameters


def actor_critic_layouts(policy: Mlp, critics: Mlp | Ensemble) -> Layouts:
    """Returns the layouts of actor and critics, and of the target network of each."""
    actor, critic = Layout(policy.shapes()), Layout(critics.shapes())
    return {"actor": actor, "actor_targets": actor, "critics": critic, "critic_targets": critic}


@dataclass(frozen=True)
class DeterministicAlgorithm(UpdateCycle):
    """Base of the algorithms whose policy is deterministic.

    An action is tanh of the first A outputs of a network.
    """

    policy: Mlp
    encoding: Encoding
    size: int
    """Number of entries of an action, A."""

    def greedy(self, parameters: Parameters, encoded: Tensor) -> Tensor:
        """Returns mu(s) float32 [N, A] of encoded observations."""
        return self.policy(parameters, encoded)[..., : self.size].tanh()

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns mu(s) float32 [N, A]."""
        del noise
        return self.greedy(parameters, self.encoding(observation))

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Returns mu(s) float32 [..., A]."""
        del noise
        actions: Array = np.tanh(
            self.policy.forward_numpy(parameters, self.encoding.forward_numpy(observation))[
                ..., : self.size
            ]
        )
        return actions


def additive_noise(
    kind: Literal["ornstein_uhlenbeck", "gaussian"], scale: float, seed: int
) -> Explorer:
    """Returns an explorer that adds noise to a run's raw actions, which are in [-1, 1].

    Args:
        kind: Independent normal noise, or an Ornstein-Uhlenbeck process.
        scale: Standard deviation of the normal noise, or sigma of the process.
        seed: The run's seed.
    """
    generator = derive_generator(seed, "agent/explore")
    if kind == "gaussian":
        return AdditiveGaussian(scale, generator=generator)
    return AdditiveOrnsteinUhlenbeck(scale, generator=generator)


def build_continuous(
    algorithm: Algorithm[Any],
    hyper: ContinuousParameters,
    context: AgentContext,
    actions: BoxActions,
    explorer: Explorer,
) -> ReplayAgent:
    """Returns an agent with the algorithm and a new memory that is sampled uniformly."""
    parts = ReplayParts(
        algorithm=algorithm,
        actions=actions,
        memory=replay_memory(hyper, actions, context, hindsight=hyper.hindsight),
        explorer=explorer,
        schedule=LearnSchedule(hyper.train_every, hyper.updates_per_train, hyper.learning_starts),
        batch_size=hyper.batch_size,
        learning_rate=hyper.learning_rate,
        random_env_steps=hyper.learning_starts,
    )
    return ReplayAgent(parts, context)
