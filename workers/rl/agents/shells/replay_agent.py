"""The shell of agents that learn from a replay memory: acting, storing, sampling, state.

Targets, losses and updates are those of an `Algorithm`.

B environments, N samples of a batch, R values of a report.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.acceleration.compiled_update import StateBuffers
from workers.acceleration.update_runner import make_runner
from workers.core.rng import derive_generator, generator_state, load_generator_state
from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
)
from workers.rl.agents.common.action_encoding import Actions
from workers.rl.agents.common.algorithm import Algorithm, ReplayBatch
from workers.rl.agents.shells.base import AgentCounters
from workers.rl.agents.shells.learning import LearningAgent
from workers.rl.exploration.explorer import Explorer
from workers.rl.memory.pack_memory import SeparateReplays, SharedReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import Places
from workers.rl.memory.transitions import Sample
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.parameter_layout import Parameters

ROWS_PER_DRAW: Final = 16_384
"""Maximum number of transitions drawn from the memory in one call.

Bounds the memory that a call to `learn` with many updates needs.
"""
_TENSORS: Final = len(ReplayBatch._fields) - 1
"""Number of leading fields that `ReplayBatch` and `Sample` have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayParts:
    """Algorithm, memory, exploration and settings of a `ReplayAgent`."""

    algorithm: Algorithm[Any]
    actions: Actions
    memory: Replay
    explorer: Explorer
    schedule: LearnSchedule
    batch_size: int
    learning_rate: float
    is_prioritized: bool = False
    """Whether the memory needs the errors of each batch before it draws the next batch."""
    random_env_steps: int = 0
    """Number of env_steps at the beginning whose actions are drawn uniformly from the space."""


class SampledBatch(NamedTuple):
    """A batch, and the places of its transitions in the memory."""

    batch: ReplayBatch
    places: Places


class ReplayAgent(LearningAgent[Algorithm[Any]]):
    """An agent that learns from a replay memory.

    The steps of `learn` and `act` are public methods, so that a pack can make the same steps for
    several agents at once (`workers.rl.agents.packs`).

    Args:
        parts: Algorithm, memory, exploration and settings.
        context: Seed and device.
    """

    def __init__(self, parts: ReplayParts, context: AgentContext) -> None:
        super().__init__(parts.algorithm, parts.actions, parts.learning_rate, context)
        self.memory: Any = parts.memory
        """The agent's own memory, or in a pack the `Lane` of the shared memory for this agent."""
        self.parts = parts
        cycle, held = parts.algorithm.cycle, StateBuffers()
        runnables = {
            update: make_runner(update, mode=context.compile, buffers=held) for update in cycle
        }
        self._cycle = [runnables[update] for update in cycle]
        self._batches = Batches(self.device)
        self._generator = derive_generator(context.seed, "agent/noise")
        self._acting_generator = derive_generator(context.seed, "agent/act")
        self._updates = 0
        self._env_steps = 0
        self._acted = 0

    @property
    def counters(self) -> AgentCounters:
        """Counters of updates and env_steps; a pack counts for its agents and sets this."""
        return AgentCounters(self._updates, self._env_steps, self._acted)

    @counters.setter
    def counters(self, counters: AgentCounters) -> None:
        self._updates, self._env_steps, self._acted = counters

    # Actor

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns exploring or, without drawing random numbers, greedy actions [B, ...]."""
        if not explore:
            return self.parts.actions.to_space(
                self._raw(observation, self.evaluation_noise(len(observation)))
            )
        if self.is_warming_up:
            self._acted += len(observation)
            return self.random_actions(len(observation))
        return self.explore_actions(self._raw(observation, self.acting_noise(len(observation))))

    @property
    def is_warming_up(self) -> bool:
        """Whether the next actions are drawn uniformly from the space."""
        return self._env_steps + self._acted < self.parts.random_env_steps

    def random_actions(self, count: int) -> Array:
        """Returns `count` actions drawn uniformly from the space."""
        return self.parts.actions.to_space(
            self.parts.actions.draw_random(self._acting_generator, count)
        )

    def acting_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` exploring actions."""
        return self.algorithm.acting_noise(self._acting_generator, count)

    def evaluation_noise(self, count: int) -> tuple[Array, ...]:
        """Returns the random numbers of `count` actions of an evaluation; none for greedy ones."""
        return self._sampler.draw(count, lambda row: self.algorithm.acting_noise(row, 1))

    def explore_actions(self, raw: Array) -> Array:
        """Applies exploration to raw actions [B, ...] and returns actions of the space."""
        at = self._env_steps + self._acted
        self._acted += len(raw)
        return self.parts.actions.to_space(self.parts.explorer.explore(raw, at))

    # Learner

    @property
    def collect_plan(self) -> CollectPlan:
        """The number of env_steps between two calls to `learn`."""
        return CollectPlan(env_steps=self.parts.schedule.every_env_steps)

    @property
    def learn_schedule(self) -> LearnSchedule:
        """When to call `learn`, and with how many updates, as the definition sets it."""
        return self.parts.schedule

    def observe(self, experience: Experience) -> None:
        """Copies the transitions into the memory."""
        if not self._training.is_on:
            return
        columns = stored_columns(self.parts.actions, experience)
        self.memory.extend(*columns, active=experience.active)
        if experience.episodes:
            self.parts.explorer.reset(np.any(experience.terminated | experience.truncated, axis=0))
        self._env_steps += experience.env_steps
        self._acted = 0

    def mark_lost_episodes(self, lost: npt.NDArray[np.bool_]) -> None:
        """Marks the environments, bool [B], whose next transition does not continue the last."""
        self.memory.cut()
        self.parts.explorer.reset(lost)

    def learn(self, updates: int) -> LearnReport:
        """Makes `updates` updates, or none while the memory holds less than one batch."""
        for drawn in self.batches(updates):
            state, report, error = self._update(self._state, drawn.batch)
            self.note(drawn, report, error)
            self.learning_state = self.algorithm.copy_targets(state, self._updates)
        return self.take_report()

    def batches(self, updates: int) -> Iterator[SampledBatch]:
        """Yields the batches of a call to `learn`.

        The caller passes each batch to `note` before it requests the next one.
        """
        if self._training.is_on:
            yield from self._batches.draw(self.memory, self.parts, updates, self.learning_noise)

    def learning_noise(self, updates: int, batch_size: int) -> tuple[Array, ...]:
        """Returns the random numbers of updates, [updates, ...] each."""
        return self.algorithm.noise(self._generator, (updates, batch_size))

    def note(self, drawn: SampledBatch, report: Tensor, error: Tensor) -> None:
        """Stores the report [R] of an update and updates priorities by its errors [N]."""
        self._updates += 1
        self._reports.append(report)
        if self.parts.is_prioritized:
            self.memory.update_errors(drawn.places, error.cpu().numpy())

    def metrics(self) -> Mapping[str, float]:
        """Returns the explorer's metrics, the number of transitions and the largest |reward|."""
        rewards = (
            {"reward/largest": self.memory.measure_largest_reward()} if len(self.memory) else {}
        )
        return {
            **self.parts.explorer.metrics(self._env_steps),
            "memory/size": float(len(self.memory)),
            **rewards,
        }

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as an exportable module with a copy of its parameters."""
        actions, algorithm = self.parts.actions, self.algorithm

        def greedy(parameters: Parameters, observation: Tensor) -> Tensor:
            return actions.tensor_to_space(algorithm.act(parameters, observation, ()))

        return ActingModule(self.named_parameters(), greedy)

    # State

    def state_dict(self) -> StateTree:
        """Returns learning state, counters, explorer and generators; not the memory."""
        return {
            **super().state_dict(),
            "updates": self._updates,
            "explorer": self.parts.explorer.state_dict(),
            "noise": generator_state(self._generator),
            "acting_noise": generator_state(self._acting_generator),
            "env_steps": self._env_steps,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition."""
        super().load_state_dict(state)
        self.parts.explorer.load_state_dict(state["explorer"])
        load_generator_state(self._generator, state["noise"])
        load_generator_state(self._acting_generator, state["acting_noise"])
        self._updates = int(state["updates"])
        self._env_steps, self._acted = int(state["env_steps"]), 0

    # Private

    @property
    def _update(self) -> Callable[..., Any]:
        return self._cycle[self._updates % len(self._cycle)]


def stored_columns(actions: Actions, experience: Experience) -> tuple[Array, ...]:
    """Returns the first six arguments of `Replay.extend` for an experience, [T, B, ...] each."""
    action = experience.action
    raw = actions.from_space(action.reshape(-1, *action.shape[2:]))
    return (
        experience.observation,
        raw.reshape(*action.shape[:2], *actions.raw_shape),
        experience.reward,
        experience.next_observation,
        experience.terminated,
        experience.truncated,
    )


class Batches:
    """Converts samples of a memory to batches of tensors.

    On the CPU the tensors are views of the sample's arrays; an array object that was in the
    previous sample too is not wrapped again.

    Args:
        device: Device of the batches.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._arrays: list[Array | None] = [None] * _TENSORS
        self._rows: list[Sequence[Tensor]] = [()] * _TENSORS
        self._made: list[ReplayBatch] = []

    def draw(
        self,
        memory: Replay | SharedReplay | SeparateReplays,
        parts: ReplayParts,
        updates: int,
        noise: Callable[[int, int], tuple[Array, ...]],
        agents: int = 1,
    ) -> Iterator[SampledBatch]:
        """Yields the batches of `updates` updates, none while the memory holds less than a batch.

        Args:
            memory: The memory of one agent, or of all agents of a pack.
            parts: Settings of the agents: batch size and prioritization.
            updates: Number of batches.
            noise: Draws the random numbers of updates from (updates, batch size); its arrays are
                [updates, ...].
            agents: Number of agents that the memory samples for.
        """
        size = parts.batch_size
        if len(memory) < size:
            return
        at_once = 1 if parts.is_prioritized else max(1, ROWS_PER_DRAW // (size * agents))
        for done in range(0, updates, at_once):
            count = min(at_once, updates - done)
            sample = memory.sample(count, size)
            yield from map(SampledBatch, self.convert(sample, noise(count, size)), sample.places)

    def convert(self, sample: Sample, noise: tuple[Array, ...]) -> list[ReplayBatch]:
        """Returns a batch per update, valid until the next sample.

        Args:
            sample: [U, N, ...]
            noise: Random numbers of the updates, [U, ...] each.
        """
        arrays: tuple[Array, ...] = sample[:_TENSORS]
        has_changed = False
        for index, (array, before) in enumerate(zip(arrays, self._arrays, strict=True)):
            if array is not before or self._device.type != "cpu":
                self._arrays[index], self._rows[index], has_changed = (
                    array,
                    self._to_tensors(array),
                    True,
                )
        if has_changed:
            self._made = [ReplayBatch._make((*row, ())) for row in zip(*self._rows, strict=True)]
        if not noise:
            return self._made
        numbers = zip(*map(self._to_tensors, noise), strict=True)
        return [batch._replace(noise=own) for batch, own in zip(self._made, numbers, strict=True)]

    def _to_tensors(self, array: Array) -> Sequence[Tensor]:
        """Returns the rows of an array as tensors on the device."""
        if self._device.type == "cpu":
            # Wrapping a row of an array takes a quarter of the time of slicing a tensor.
            return [torch.from_numpy(row) for row in array]
        return torch.from_numpy(array).to(self._device).unbind()
