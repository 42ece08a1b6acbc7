"""What the built-in agents share: parameters in one vector, their optimiser state, and the switch between training and evaluation."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from workers.agents.adam import AdamState, adam_start
from workers.core.rng import derive_seed
from workers.core.types import Array, Experience, StateTree
from workers.networks.layout import Layout


class Weights:
    """Parameters and optimiser state of one agent. Values are replaced by an update, never written to.

    Args:
        layout: Names and shapes of the parameters.
        parameters: Initial values.
        learning_rate: Step size of the first update.
        device: Where they live.
    """

    def __init__(self, layout: Layout, parameters: Mapping[str, Tensor], learning_rate: float, device: torch.device) -> None:
        self._layout = layout
        self._learning_rate = learning_rate
        self._vector = layout.join(parameters).to(device)
        self.named = layout.split(self._vector)
        self.optimizer = adam_start(self._vector, learning_rate)

    @property
    def vector(self) -> Tensor:
        """All parameters, float32 [P]; `named` holds views of it by name."""
        return self._vector

    @vector.setter
    def vector(self, value: Tensor) -> None:
        self._vector = value
        self.named = self._layout.split(value)

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if value == self._learning_rate:
            return
        self._learning_rate = value
        self.optimizer = self.optimizer._replace(learning_rate=torch.tensor(value, device=self._vector.device))

    def state_dict(self) -> StateTree:
        """Returns parameters by name and the optimiser's moments as vectors in the same order."""
        optimizer = self.optimizer
        return {
            "parameters": {name: tensor.clone() for name, tensor in self.named.items()},
            "optimizer": {"first": optimizer.first, "second": optimizer.second, "step": optimizer.step},
            "learning_rate": self._learning_rate,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Brings everything to a captured state; raises ValueError where it is of another network."""
        device = self._vector.device
        self.vector = self._layout.join(state["parameters"]).to(device)
        stored = state["optimizer"]
        first, second, step = (torch.as_tensor(stored[name]).to(device, copy=True) for name in ("first", "second", "step"))
        self._learning_rate = float(state["learning_rate"])
        self.optimizer = AdamState(first, second, step, torch.tensor(self._learning_rate, device=device))


class TrainingSwitch:
    """Whether an agent learns."""

    def __init__(self) -> None:
        self.on = True

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switches off for the body; the previous setting comes back however the body is left."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before


class Rows(NamedTuple):
    """Transitions of an experience as one list of N rows, without the slots that waited."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array


def rows_of(experience: Experience) -> Rows:
    """Returns the active transitions, ordered by vector step and then by environment; views where every slot is active."""
    columns = (experience.observation, experience.action, experience.reward, experience.next_observation, experience.terminated)
    if experience.active is not None:
        return Rows(*(column[experience.active] for column in columns))
    return Rows(*(column.reshape(-1, *column.shape[2:]) for column in columns))


def torch_generator(seed: int) -> torch.Generator:
    """Returns the generator for a run's initial parameters."""
    return torch.Generator().manual_seed(derive_seed(seed, "agent/parameters"))
