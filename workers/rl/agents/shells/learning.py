"""Base of the shells: the state that updates replace, its learning rate, and how it acts.

B environments, R values of a report.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.acceleration.nested_tensors import map_tensors
from workers.core.types import AgentContext, Array, Experience, LearnReport, StateTree
from workers.rl.agents.common.action_encoding import ActionCodec
from workers.rl.agents.common.algorithm import PolicyAlgorithm
from workers.rl.agents.common.learning_state import (
    learning_rates,
    load_state,
    replace_learning_rates,
    state_tree,
)
from workers.rl.agents.shells.base import ActionSampler, TrainingSwitch, torch_generator
from workers.rl.networks.parameter_layout import Layout, Parameters

A = TypeVar("A", bound=PolicyAlgorithm[Any])


class LearningAgent(Generic[A]):
    """Base of the shells: holds the learning state and computes actions from its parameters.

    Args:
        algorithm: Pure functions that act and update.
        actions: Converts raw actions to actions of the space.
        learning_rate: Step size at the beginning.
        context: Seed and device.
    """

    def __init__(
        self, algorithm: A, actions: ActionCodec, learning_rate: float, context: AgentContext
    ) -> None:
        self.actions = actions
        self.report_names = algorithm.report_names
        self.device = torch.device(context.device)
        self.algorithm = algorithm
        self._layout: Layout = algorithm.layouts[algorithm.actor]
        self._state: object = map_tensors(
            self._copy_to_device, algorithm.start(torch_generator(context.seed))
        )
        self._first_rates = learning_rates(self._state)
        self._first_learning_rate = self._learning_rate = learning_rate
        self._training = TrainingSwitch()
        self._reports: list[Tensor] = []
        """Reports of the updates since the last call to `take_report`, [R] each."""
        self._sampler = ActionSampler()
        self._named: Parameters | None = None
        self._arrays: Mapping[str, Array] | None = None

    @property
    def learning_state(self) -> Any:
        """Named tuple of tensors that an update replaces or modifies in place.

        For updates in place see `workers.acceleration.compiled_update.StateBuffers`.
        """
        return self._state

    @learning_state.setter
    def learning_state(self, state: object) -> None:
        # Views of a state that was modified in place stay valid.
        if state is not self._state:
            self._state = state
            self._named = self._arrays = None

    @property
    def learning_rate(self) -> float:
        """Step size of the next update; setting it scales all optimisers by the same factor."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if value != self._learning_rate:
            factor = value / self._first_learning_rate
            self._state = replace_learning_rates(
                self._state, (rate * factor for rate in self._first_rates)
            )
            self._learning_rate = value

    def take_report(self) -> LearnReport:
        """Returns the number of updates since the last call and the mean of their reports."""
        reports, self._reports = self._reports, []
        return report_of(reports) if reports else LearnReport(0)

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent neither stores transitions nor learns."""
        return self._training.turn_off()

    def sample_actions(
        self, seed: int, rows: Sequence[np.random.Generator]
    ) -> AbstractContextManager[None]:
        """Returns a context in which evaluations draw their actions; see `StochasticActor`."""
        del seed
        return self._sampler.use(rows)

    def explore_actions(self, raw: Array) -> Array:
        """Returns the actions of the space for raw exploring actions [B, ...]."""
        raise NotImplementedError

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the memory."""
        raise NotImplementedError

    def mark_lost_episodes(self, lost: npt.NDArray[np.bool_]) -> None:
        """Marks the environments, bool [B], whose next transition does not continue the last."""
        raise NotImplementedError

    def state_dict(self) -> StateTree:
        """Returns the learning state and the learning rate; the memory is saved separately."""
        return {
            "learning": state_tree(self._state, self.algorithm.layouts),
            "learning_rate": self._learning_rate,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition."""
        self.learning_state = load_state(self._state, state["learning"], self.algorithm.layouts)
        self._learning_rate = float(state["learning_rate"])

    def named_parameters(self) -> Parameters:
        """Returns the policy's parameters by name, as views of the learning state."""
        if self._named is None:
            self._named = self._layout.split(getattr(self._state, self.algorithm.actor))
        return self._named

    def _raw(self, observation: Array, noise: tuple[Array, ...]) -> Array:
        """Returns raw actions [B, ...], computed in numpy where the algorithm supports it."""
        if self.device.type == "cpu":
            if self._arrays is None:
                self._arrays = self._layout.split_array(
                    getattr(self._state, self.algorithm.actor).numpy()
                )
            quick = self.algorithm.act_arrays(self._arrays, observation, noise)
            if quick is not None:
                return quick
        with torch.inference_mode():
            raw = self.algorithm.act(
                self.named_parameters(), self._tensor(observation), tuple(map(self._tensor, noise))
            )
        result: Array = raw.cpu().numpy()
        return result

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _copy_to_device(self, tensor: Tensor) -> Tensor:
        # The copy keeps parameters and target network from sharing a tensor: code compiled for a
        # shared tensor would be compiled again once the two differ.
        return tensor.to(self.device, copy=True)


def report_of(reports: Sequence[Tensor]) -> LearnReport:
    """Returns one report of at least one update, whose reports are [R] each."""
    if len(reports) == 1:
        return LearnReport(1, rows_of(reports[0]))
    rows = torch.stack(tuple(reports))
    return LearnReport(len(reports), rows_of(rows.mean(0)), rows_of(rows))


def reports_of(reports: Sequence[Tensor]) -> list[LearnReport]:
    """Returns a report for each of m agents of at least one update, whose reports are [m, R]."""
    if len(reports) == 1:
        return [LearnReport(1, values) for values in rows_of(reports[0])]
    rows = torch.stack(tuple(reports))
    return [
        LearnReport(len(reports), values, own)
        for values, own in zip(rows_of(rows.mean(0)), rows_of(rows.transpose(0, 1)), strict=True)
    ]


def rows_of(values: Tensor) -> Any:
    """Returns the rows of reports [..., R], or the numbers of one report [R].

    Values on an accelerator are returned as tensors, because reading them would synchronise.

    Values on the CPU are returned as Python floats, which are cheapest to keep and to free: freeing
    a tensor releases the interpreter's lock, and when the telemetry thread freed one tensor per
    report, that took a seventh of the training time.
    """
    return values.tolist() if values.is_cpu else values
