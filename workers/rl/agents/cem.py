"""The noisy cross-entropy method over the parameters of a policy.

Szita & Lorincz 2006, "Learning Tetris Using the Noisy Cross-Entropy Method".

P candidates of a generation, D parameters of a policy, A outputs of its network, B environments. An
environment plays whole episodes of one candidate at a time. Candidates are a function of the
distribution, the run's seed and the generation's number, so snapshots do not contain them.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from torch import Tensor

from palestra.contract.agents import CemParameters
from workers.core.rng import derive_generator
from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
)
from workers.rl.agents.cem_candidates import Candidates
from workers.rl.agents.common.action_encoding import box_actions, discrete_actions
from workers.rl.agents.shells.base import TrainingSwitch
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.parameter_layout import Layout, Parameters

Floats = npt.NDArray[np.float64]

_NEVER: Final = 2**62


def elites_of(scores: Floats, fraction: float) -> npt.NDArray[np.int64]:
    """Returns the indices int64 of the candidates with the highest scores [P], best first.

    There are `fraction` * P elites, rounded down, but at least one. NaN ranks last.
    """
    return np.argsort(-scores, kind="stable")[: max(1, int(fraction * len(scores)))]


def added_variance(hyper: CemParameters, generation: int) -> float:
    """Returns Z_t = max(noise (1 - t / noise_generations), 0).

    With the default hyperparameters this is max(5 - t / 10, 0), as in the paper.
    """
    return max(hyper.noise * (1 - generation / hyper.noise_generations), 0.0)


class Cem:
    """Searches for parameters of a policy. Generation t, counted from 0, is one update.

    Args:
        hyper: Hyperparameters.
        context: Spaces and seed; everything is computed on the CPU.
    """

    report_names: ClassVar[tuple[str, ...]] = (
        "loss/elites",
        "population/return",
        "population/best",
        "population/std",
    )

    def __init__(self, hyper: CemParameters, context: AgentContext) -> None:
        self._hyper, self._seed = hyper, context.seed
        space = context.action_space
        self._is_discrete = not isinstance(space, spaces.Box)
        self._actions = (
            discrete_actions(space, "cem") if self._is_discrete else box_actions(space, "cem")
        )
        self._encoding = encoding_of(context.observation_space)
        outputs = int(space.n) if isinstance(space, spaces.Discrete) else self._actions.raw_shape[0]
        self._policy = Mlp(
            "policy", (self._encoding.size, *hyper.hidden_sizes, outputs), hyper.activation
        )
        self._layout = Layout(self._policy.shapes())
        self.memory = Candidates(
            hyper.population_size, hyper.episodes_per_candidate, context.num_envs
        )
        self.learning_rate = hyper.learning_rate
        """Step size in (0, 1]: 1 replaces mean and variance by those of the elites."""
        self._training = TrainingSwitch()
        self._generation = 0
        self._mean: Floats = np.zeros(self._layout.size)
        self._variance: Floats = np.full(self._layout.size, hyper.initial_std**2)
        self._playing: Array | None = None
        self._stack: Mapping[str, Array] = {}
        self._draw_candidates()

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...] of each environment's candidate, or of the mean parameters.

        The mean parameters act if `explore` is false.
        """
        encoded = self._encoding.forward_numpy(observation)
        if not explore:
            return self._actions.to_space(
                self._raw(self._policy.forward_numpy(self._greedy, encoded))
            )
        assigned = self.memory.assigned
        playing = assigned if len(encoded) == len(assigned) else np.resize(assigned, len(encoded))
        if self._playing is not playing:
            self._playing, self._stack = (
                playing,
                self._layout.split_array(self._population[playing]),
            )
        return self._actions.to_space(
            self._raw(self._policy.forward_numpy(self._stack, encoded[:, None])[:, 0])
        )

    # Learner

    @property
    def collect_plan(self) -> CollectPlan:
        """A collect of B whole episodes, one per environment."""
        return CollectPlan(episodes=len(self.memory.assigned))

    @property
    def learn_schedule(self) -> LearnSchedule:
        """One call of `learn` after each collect of episodes."""
        return LearnSchedule(_NEVER, 1, learns_at_episode_end=True)

    def observe(self, experience: Experience) -> None:
        """Adds the rewards to the returns of the candidates."""
        if self._training.is_on:
            self.memory.extend(
                experience.reward, experience.terminated | experience.truncated, experience.active
            )

    def learn(self, updates: int) -> LearnReport:
        """Updates the distribution and draws the next generation once all candidates have played.

        Makes one update at most, whatever `updates` is.
        """
        if not self._training.is_on or updates < 1 or not self.memory.is_complete:
            return LearnReport(0)
        scores = self.memory.scores
        elites = elites_of(scores, self._hyper.elite_fraction)
        self._move_towards(self._population[elites])
        self._generation += 1
        self._draw_candidates()
        self.memory.begin()
        return LearnReport(
            1, np.array([-scores[elites].mean(), scores.mean(), scores[elites[0]], self._deviation])
        )

    def metrics(self) -> Mapping[str, float]:
        """Returns the number of episodes of this generation and the root of the mean variance."""
        return {"memory/size": float(len(self.memory)), "explore/scale": self._deviation}

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which rewards are not counted and nothing is learnt."""
        return self._training.turn_off()

    def acting_module(self) -> ActingModule:
        """Returns the policy of the mean parameters as an exportable module."""
        policy, encoding, actions, discrete = (
            self._policy,
            self._encoding,
            self._actions,
            self._is_discrete,
        )

        def greedy(parameters: Parameters, observation: Tensor) -> Tensor:
            outputs = policy(parameters, encoding(observation))
            return actions.tensor_to_space(outputs.argmax(-1) if discrete else outputs.tanh())

        return ActingModule(
            {name: torch.from_numpy(array) for name, array in self._greedy.items()}, greedy
        )

    # State

    def state_dict(self) -> StateTree:
        """Returns mean, variance, number of the generation, learning rate and seed."""
        parameters = self._layout.split(torch.from_numpy(self._mean.copy()))
        return {
            "parameters": {name: tensor.clone() for name, tensor in parameters.items()},
            "variance": self._variance,
            "generation": self._generation,
            "learning_rate": self.learning_rate,
            "seed": self._seed,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition.

        Raises ValueError if the stored parameters are of another network.
        """
        self._mean = self._layout.join(state["parameters"]).numpy()
        self._variance = np.array(state["variance"], np.float64)
        self._generation, self._seed = int(state["generation"]), int(state["seed"])
        self.learning_rate = float(state["learning_rate"])
        self._draw_candidates()

    # Private

    @property
    def _deviation(self) -> float:
        return float(np.sqrt(self._variance.mean()))

    def _move_towards(self, elites: Array) -> None:
        """Moves mean and variance towards those of the elites [n, D], by the learning rate.

        The variance added for exploration is part of the elites' variance.
        """
        chosen, rate = elites.astype(np.float64), self.learning_rate
        variance = chosen.var(0) + added_variance(self._hyper, self._generation)
        self._mean = (1 - rate) * self._mean + rate * chosen.mean(0)
        self._variance = (1 - rate) * self._variance + rate * variance

    def _draw_candidates(self) -> None:
        """Draws the candidates [P, D] from the distribution, which has changed."""
        normal = derive_generator(self._seed, "agent/population", self._generation).standard_normal(
            (self._hyper.population_size, self._layout.size)
        )
        self._population = (self._mean + np.sqrt(self._variance) * normal).astype(np.float32)
        self._greedy = self._layout.split_array(self._mean.astype(np.float32))
        self._playing = None

    def _raw(self, outputs: Array) -> Array:
        raw: Array = outputs.argmax(-1) if self._is_discrete else np.tanh(outputs)
        return raw


def build(parameters: CemParameters, context: AgentContext) -> Cem:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    return Cem(parameters, context)
