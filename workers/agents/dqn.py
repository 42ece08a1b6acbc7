"""Deep Q-network (Mnih et al. 2015) with double Q-learning (van Hasselt, Guez & Silver 2016).

Reads from top to bottom: the mathematics as pure functions, then the agent that feeds them. A state is (parameters, targets, optimiser),
all flat vectors; `update` maps a state and a batch to the next state. B environments, N transitions of a batch, P parameters.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn.functional import huber_loss, mse_loss

from palestra.contract.agents import DqnParameters
from workers.agents.adam import AdamState, adam, clip_to_norm
from workers.agents.base import TrainingSwitch, Weights, rows_of, torch_generator
from workers.agents.gradients import Gradient, runnable
from workers.core.errors import DefinitionError
from workers.core.rng import derive_generator
from workers.core.types import AgentContext, Array, CollectPlan, Experience, LearnReport, LearnSchedule, StateTree
from workers.explorers.epsilon import LinearEpsilonGreedy
from workers.memory.ring import Fields, Ring
from workers.memory.sampling import UniformSampler
from workers.networks.acting import ActingModule
from workers.networks.encoding import Encoding, encoding_of
from workers.networks.layout import Layout, Parameters
from workers.networks.mlp import Mlp

REPORT_NAMES: Final = ("loss/td", "q/mean", "gradient/norm")
_ROWS_PER_DRAW: Final = 16_384
"""Transitions drawn from the memory in one piece; bounds what a call with many updates holds at once."""


class Batch(NamedTuple):
    """Transitions to learn from."""

    observation: Tensor
    """[N, ...]"""
    action: Tensor
    """int64 [N], counted from 0."""
    reward: Tensor
    """float32 [N]"""
    next_observation: Tensor
    """[N, ...]"""
    terminated: Tensor
    """bool [N]"""


@dataclass(frozen=True)
class DqnMath:
    """The mathematics of one definition: pure functions of tensors."""

    network: Mlp
    encoding: Encoding
    layout: Layout
    hyper: DqnParameters

    def values(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns Q float32 [N, actions]."""
        return self.network(parameters, self.encoding(observation))

    def greedy(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the actions int64 [N] of highest value, counted from 0."""
        return self.values(parameters, observation).argmax(1)

    def td_targets(self, parameters: Parameters, targets: Parameters, batch: Batch) -> Tensor:
        """Returns r + gamma * Q_target(s', a') float32 [N], without the second term in terminal states.

        a' is the best action by the online network (double) or by the target network itself.
        """
        next_values = self.values(targets, batch.next_observation)
        if self.hyper.double:
            best = self.greedy(parameters, batch.next_observation)
            value = next_values.gather(1, best.unsqueeze(1)).squeeze(1)
        else:
            value = next_values.amax(1)
        return batch.reward + self.hyper.gamma * value.masked_fill(batch.terminated, 0.0)

    def loss(self, parameters: Parameters, batch: Batch, td_targets: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the mean loss on the temporal-difference error [] and the mean value of the actions taken []."""
        value = self.values(parameters, batch.observation).gather(1, batch.action.unsqueeze(1)).squeeze(1)
        error = huber_loss if self.hyper.loss == "huber" else mse_loss
        return error(value, td_targets), value.mean()

    def update(
        self, gradient: Gradient, parameters: Tensor, targets: Tensor, optimizer: AdamState, batch: Batch
    ) -> tuple[Tensor, Tensor, AdamState, Tensor]:
        """Returns parameters [P], targets [P] and optimiser state after one update, and the values of `REPORT_NAMES` [3]."""
        td_targets = self.td_targets(self.layout.split(parameters), self.layout.split(targets), batch)
        slope, loss, value = gradient(lambda vector: self.loss(self.layout.split(vector), batch, td_targets), parameters)
        slope, norm = clip_to_norm(slope, self.hyper.max_grad_norm)
        parameters, optimizer = adam(parameters, slope, optimizer)
        copied = optimizer.step % self.hyper.target_update_every == 0
        return parameters, torch.where(copied, parameters, targets), optimizer, torch.stack((loss, value, norm))


class DqnAgent:
    """Acts epsilon-greedily, stores transitions in a ring and learns from uniform samples of it.

    Args:
        hyper: Hyperparameters.
        context: Spaces, seed and device.

    Raises:
        DefinitionError: If a space does not fit.
    """

    report_names = REPORT_NAMES

    def __init__(self, hyper: DqnParameters, context: AgentContext) -> None:
        actions = context.action_space
        if not isinstance(actions, spaces.Discrete):
            raise DefinitionError(f"agent dqn needs a Discrete action space, not {actions}; ppo takes Box actions too")
        encoding = encoding_of(context.observation_space)
        network = Mlp("q", (encoding.size, *hyper.hidden_sizes, int(actions.n)), hyper.activation)
        layout = Layout(network.shapes())
        self._hyper = hyper
        self._math = DqnMath(network, encoding, layout, hyper)
        self._update = runnable(self._math.update, compiled=context.compile)
        self._device = torch.device(context.device)
        self._weights = Weights(layout, network.initial_uniform(torch_generator(context.seed)), hyper.learning_rate, self._device)
        self._targets = self._weights.vector
        self._first_action = int(actions.start)
        self._explorer = LinearEpsilonGreedy(
            start=hyper.epsilon_start,
            end=hyper.epsilon_end,
            decay_steps=hyper.epsilon_decay_steps,
            actions=int(actions.n),
            generator=derive_generator(context.seed, "agent/explore"),
        )
        self._sampler = UniformSampler(derive_generator(context.seed, "agent/sample"))
        row = (encoding.shape, encoding.dtype)
        fields: Fields = {"observation": row, "action": ((), np.int64), "reward": ((), np.float32)}
        self.memory = Ring(hyper.buffer_size, {**fields, "next_observation": row, "terminated": ((), np.bool_)})
        self._training = TrainingSwitch()
        self._env_steps = 0
        self._acted = 0

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions int64 [B]: epsilon-greedy, or greedy without a random number."""
        with torch.inference_mode():
            greedy: Array = self._math.greedy(self._weights.named, self._tensor(observation)).cpu().numpy()
        if explore:
            greedy = self._explorer.explore(greedy, self._env_steps + self._acted)
            self._acted += len(greedy)
        return greedy + self._first_action if self._first_action else greedy

    # Learner

    @property
    def collect_plan(self) -> CollectPlan:
        """As many env_steps as lie between two calls to learn."""
        return CollectPlan(env_steps=self._hyper.train_every)

    @property
    def learn_schedule(self) -> LearnSchedule:
        """From the definition."""
        hyper = self._hyper
        return LearnSchedule(hyper.train_every, hyper.updates_per_train, hyper.learning_starts)

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the ring."""
        if not self._training.on:
            return
        rows = rows_of(experience)
        actions = rows.action - self._first_action if self._first_action else rows.action
        self.memory.extend((rows.observation, actions, rows.reward, rows.next_observation, rows.terminated))
        self._env_steps += experience.env_steps
        self._acted = 0

    def learn(self, updates: int) -> LearnReport:
        """Makes `updates` updates, or none while the ring holds less than one batch."""
        batch_size = self._hyper.batch_size
        if not self._training.on or updates < 1 or len(self.memory) < batch_size:
            return LearnReport(0)
        weights, targets, total = self._weights, self._targets, torch.zeros(len(REPORT_NAMES), device=self._device)
        vector, optimizer = weights.vector, weights.optimizer
        per_draw = max(1, _ROWS_PER_DRAW // batch_size)
        for done in range(0, updates, per_draw):
            for batch in self._batches(min(per_draw, updates - done)):
                vector, targets, optimizer, report = self._update(vector, targets, optimizer, batch)
                total = total + report
        weights.vector, weights.optimizer, self._targets = vector, optimizer, targets
        return LearnReport(updates, total / updates)

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._weights.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._weights.learning_rate = value

    def metrics(self) -> Mapping[str, float]:
        """Returns the probability of a random action, and the size of the memory."""
        return {"explore/epsilon": self._explorer.epsilon(self._env_steps), "memory/size": float(len(self.memory))}

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which nothing is stored and nothing learnt."""
        return self._training.off()

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as a module of its own."""
        first, greedy = self._first_action, self._math.greedy
        return ActingModule(self._weights.named, lambda parameters, observation: greedy(parameters, observation) + first)

    # State

    def state_dict(self) -> StateTree:
        """Returns everything but the memory."""
        return {
            **self._weights.state_dict(),
            "targets": {name: tensor.clone() for name, tensor in self._math.layout.split(self._targets).items()},
            "explorer": self._explorer.state_dict(),
            "sampler": self._sampler.state_dict(),
            "env_steps": self._env_steps,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Brings a freshly built agent of the same definition to a captured state."""
        self._weights.load_state_dict(state)
        self._targets = self._math.layout.join(state["targets"]).to(self._device)
        self._explorer.load_state_dict(state["explorer"])
        self._sampler.load_state_dict(state["sampler"])
        self._env_steps, self._acted = int(state["env_steps"]), 0

    # Private

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _batches(self, count: int) -> list[Batch]:
        places = self._sampler.places(len(self.memory), (count, self._hyper.batch_size))
        columns = [self._tensor(array).unbind(0) for array in self.memory.take(places)]
        return [Batch(*rows) for rows in zip(*columns, strict=True)]


def build(parameters: DqnParameters, context: AgentContext) -> DqnAgent:
    """Builds the agent; see `DqnAgent`."""
    return DqnAgent(parameters, context)
