"""The agent of the engine in an A3C run: it holds the tensors that the run's processes share.

It acts in evaluations, is saved and exported. Updates are made by the processes alone.

P parameters.
"""

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Final

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import A3cParameters
from workers.core.null_parts import NoMemory
from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
)
from workers.rl.agents.a3c import NO_REWARD, REPORT_NAMES, SHARED_ATTRIBUTES
from workers.rl.agents.common.actor_critic import actor_critic
from workers.rl.agents.shared_tensors import share
from workers.rl.agents.shells.base import ActionSampler, torch_generator
from workers.rl.agents.shells.rollout_statistics import LARGEST_REWARD
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.parameter_layout import Parameters

_GRANT: Final = 128
"""env_steps per process between two boundaries: enough that the wait of the first process for the
last one at a boundary takes a small share of the time.
"""
_NEVER: Final = 2**62


class SharedA3c:
    """Parameters and RMSprop statistics in shared memory.

    The `workers.rl.agents.a3c.A3c` of every process writes to them.

    Args:
        hyper: Hyperparameters.
        context: Spaces and seed. Whatever its device, the tensors are on the CPU.

    Raises:
        DefinitionError: If the agent does not support a space.
    """

    shared_attributes: ClassVar[tuple[str, ...]] = SHARED_ATTRIBUTES
    report_names = REPORT_NAMES
    learn_schedule = LearnSchedule(every_env_steps=_NEVER, updates=1)
    """The engine never makes updates: the processes learn while they collect."""
    learns_as_it_gathers = True
    """Updates are made during a collect, possibly after each env_step."""

    def __init__(self, hyper: A3cParameters, context: AgentContext) -> None:
        model = self._model = actor_critic(context, "a3c", hyper.hidden_sizes, hyper.activation)
        self.learning_rate = hyper.learning_rate
        """Step size of the updates from the next collect on."""
        self.collect_plan = CollectPlan(env_steps=_GRANT * hyper.processes)
        self.exact = hyper.processes == 1
        """Whether results are independent of the timing of processes: with one process only."""
        self.memory = NoMemory()
        self.parameters = model.layout.join(model.initial_parameters(torch_generator(context.seed)))
        """float32 [P]"""
        self.squares = torch.zeros_like(self.parameters)
        """float32 [P]: running mean of the gradient's square."""
        self.largest_reward = torch.tensor(NO_REWARD, dtype=torch.float64)
        """float64 []: largest |reward| of all processes; `NO_REWARD` before the first update."""
        self.shared = share(self)
        """The shared tensors, for `workers.rl.agents.shared_tensors.adopt` in the processes."""
        self._sampler = ActionSampler()
        self._named = model.layout.split(self.parameters)
        self._arrays = model.layout.split_array(self.parameters.numpy())

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns the most probable actions [B, ...], or in `sample_actions` drawn ones.

        Raises ValueError if `explore` is true: only the processes explore.
        """
        if explore:
            raise ValueError("a3c explores only in its processes: call act with explore=False")
        outputs = self._model.acting_outputs(self._named, self._arrays, observation)
        policy = self._model.policy
        drawn = self._sampler.draw(len(observation), lambda row: (policy.noise(row, (1,)),))
        return policy.to_space(policy.sample(self._arrays, outputs, drawn[0] if drawn else None))

    def sample_actions(
        self, seed: int, rows: Sequence[np.random.Generator]
    ) -> AbstractContextManager[None]:
        """Returns a context in which evaluations draw their actions; see `StochasticActor`."""
        del seed
        return self._sampler.use(rows)

    def observe(self, experience: Experience) -> None:
        """Does nothing: the processes learn from their transitions themselves."""

    def learn(self, updates: int) -> LearnReport:
        """Makes no updates; those of the processes are in `Experience.learn_reports`."""
        del updates
        return LearnReport(0)

    def metrics(self) -> Mapping[str, float]:
        """Returns the largest |reward| of all processes, from the first update on."""
        largest = self.largest_reward.item()
        return {} if largest == NO_REWARD else {LARGEST_REWARD: largest}

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context without effect: nothing is learnt between two collects anyway."""
        return contextlib.nullcontext()

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as an exportable module with a copy of its parameters."""
        model, policy = self._model, self._model.policy
        parameters = {
            name: tensor for name, tensor in self._named.items() if not name.startswith("value.")
        }

        def greedy(parameters: Parameters, observation: Tensor) -> Tensor:
            return policy.tensor_to_space(
                policy.sample_tensor(parameters, model.outputs(parameters, observation), None)
            )

        return ActingModule(parameters, greedy)

    def state_dict(self) -> StateTree:
        """Returns what is shared and the learning rate.

        The collector saves the state of each process (`A3c.own_state`).
        """
        parameters = {name: part.clone() for name, part in self._named.items()}
        return {
            "parameters": parameters,
            "squares": self.squares.clone(),
            "largest_reward": self.largest_reward.item(),
            "learning_rate": self.learning_rate,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the shared tensors, in place, and the learning rate.

        Raises ValueError if the stored parameters are of another network.
        """
        self.parameters.copy_(self._model.layout.join(state["parameters"]))
        self.squares.copy_(torch.as_tensor(state["squares"]))
        self.largest_reward.fill_(state["largest_reward"])
        self.learning_rate = float(state["learning_rate"])


def build(parameters: A3cParameters, context: AgentContext) -> SharedA3c:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    return SharedA3c(parameters, context)
