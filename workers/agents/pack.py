"""A pack: agents of one definition with different seeds, which act and learn as one batch.

Each agent keeps all that is its own: memory, exploration, generators, counters. The pack makes two steps for all of them at once: the
forward pass of acting, and the update, stacked over the agents by `vmap`. What each draws, stores and reports is what it would by itself.

All members are to be asked in turn, each as often as the others: the first that is asked makes the step for all, and the others find
theirs done. n agents in the pack, B environments of each.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from workers.agents.gradients import stacked
from workers.agents.replay import cycle_of
from workers.agents.state import map_tensors
from workers.core.protocols import Memory
from workers.core.types import Array, CollectPlan, CompileMode, Experience, LearnReport, LearnSchedule, StateTree
from workers.networks.acting import ActingModule
from workers.networks.layout import Layout


class Drawn(Protocol):
    """A batch that an agent drew."""

    @property
    def batch(self) -> Any: ...


class Packable(Protocol):
    """An agent that can be a member: `workers.agents.replay.ReplayAgent` or `workers.agents.rollout.RolloutAgent`."""

    learning_state: Any
    learning_rate: float
    reads_state: bool
    """Whether `batches` reads the learning state."""

    @property
    def algorithm(self) -> Any: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def phase(self) -> int: ...
    @property
    def report_names(self) -> tuple[str, ...]: ...
    @property
    def collect_plan(self) -> CollectPlan: ...
    @property
    def learn_schedule(self) -> LearnSchedule: ...
    @property
    def warming_up(self) -> bool: ...
    def act(self, observation: Array, *, explore: bool) -> Array: ...
    def normalised(self, observation: Array) -> Array: ...
    def acting_noise(self, count: int) -> tuple[Array, ...]: ...
    def explored(self, raw: Array) -> Array: ...
    def observe(self, experience: Experience) -> None: ...
    def batches(self, updates: int) -> Iterator[Any]: ...
    def note(self, drawn: Any, report: Tensor, error: Tensor) -> None: ...
    def concluded(self) -> LearnReport: ...
    def metrics(self) -> Mapping[str, float]: ...
    def eval_mode(self) -> AbstractContextManager[None]: ...
    def acting_module(self) -> ActingModule: ...
    def state_dict(self) -> StateTree: ...
    def load_state_dict(self, state: StateTree) -> None: ...


class Pack:
    """The agents of a pack.

    Args:
        agents: At least one, of one definition, on the CPU or all on one device.
        mode: How the stacked update runs.
    """

    def __init__(self, agents: Sequence[Packable], mode: CompileMode) -> None:
        first = agents[0]
        self._agents = list(agents)
        self._algorithm = first.algorithm
        self._layout: Layout = first.algorithm.layouts[first.algorithm.actor]
        cycle = cycle_of(first.algorithm)
        together = {update: stacked(update, mode=mode) for update in cycle}
        self._cycle = [together[update] for update in cycle]
        self._rows = list(range(len(agents)))
        """Which agent each row of the stack is of; those that left stay until half of the rows are theirs."""
        self._live = set(self._rows)
        self._stack: Any = map_tensors(lambda *rows: torch.stack(rows), *(agent.learning_state for agent in agents))
        self._behind = [False] * len(agents)
        """Which agents do not hold their row of the stack yet."""
        self._reports: dict[int, LearnReport] = {}
        self._arrays: Mapping[str, Array] | None = None

    @property
    def members(self) -> list["PackMember"]:
        """Returns what stands for each agent towards its engine, in order."""
        return [PackMember(self, index) for index in range(len(self._agents))]

    @property
    def live(self) -> list[int]:
        """Members that have not left, in order."""
        return sorted(self._live)

    def agent(self, index: int) -> Packable:
        """Returns an agent, with its own row of the stack."""
        agent = self._agents[index]
        if self._behind[index]:
            self._behind[index] = False
            row = self._rows.index(index)
            agent.learning_state = map_tensors(lambda leaf: leaf[row], self._stack)
        return agent

    def changed(self, index: int) -> None:
        """Says that an agent's learning state was set from outside."""
        row = self._rows.index(index)
        self._arrays = None
        self._stack = map_tensors(lambda leaf, own: _with_row(leaf, row, own), self._stack, self._agents[index].learning_state)

    def act(self, observations: Mapping[int, Array]) -> dict[int, Array]:
        """Returns exploring actions [B, ...] of each live member for its observations [B, ...]."""
        if any(self._agents[index].warming_up for index in observations):
            return {index: self.agent(index).act(rows, explore=True) for index, rows in observations.items()}
        noise = {index: self._agents[index].acting_noise(len(rows)) for index, rows in observations.items()}
        raw = self._raw(observations, noise)
        return {index: self._agents[index].explored(rows) for index, rows in raw.items()}

    def observe(self, index: int, experience: Experience) -> None:
        """Lets an agent store what was gathered for it."""
        self._agents[index].observe(experience)

    def learn(self, index: int, updates: int) -> LearnReport:
        """Returns what one member's learning gave; the first that asks lets all of them learn.

        Raises:
            RuntimeError: If the members are not asked in turn.
        """
        if index not in self._reports:
            if self._reports:
                raise RuntimeError(f"members {sorted(self._reports)} of the pack did not ask for what they learnt: they are out of step")
            self._learn(updates)
        return self._reports.pop(index)

    def leave(self, index: int) -> None:
        """Lets a member go: it keeps what it learnt, and the others go on without it."""
        self.agent(index)
        self._live.discard(index)
        self._reports.pop(index, None)
        if self._live and 2 * len(self._live) <= len(self._rows):
            kept = [row for row, index in enumerate(self._rows) if index in self._live]
            self._rows = [self._rows[row] for row in kept]
            self._stack = map_tensors(lambda leaf: leaf[kept], self._stack)
            self._arrays = None

    # Private

    def _learn(self, updates: int) -> None:
        agents = {index: self.agent(index) if self._agents[index].reads_state else self._agents[index] for index in self.live}
        streams = {index: agent.batches(updates) for index, agent in agents.items()}
        while drawn := {index: one for index, stream in streams.items() if (one := next(stream, None)) is not None}:
            spare = next(iter(drawn.values()))
            batch = map_tensors(lambda *rows: torch.stack(rows), *(drawn.get(index, spare).batch for index in self._rows))
            state, reports, errors = self._cycle[self._phase(drawn)](self._stack, batch)
            self._stack = state if len(drawn) == len(self._live) else self._only(drawn, state)
            for row, index in enumerate(self._rows):
                if index in drawn:
                    self._agents[index].note(drawn[index], reports[row], errors[row])
                    self._behind[index] = True
        self._arrays = None
        self._reports = {index: self._agents[index].concluded() for index in streams}

    def _phase(self, drawn: Mapping[int, Drawn]) -> int:
        """Returns which entry of the algorithm's cycle is next."""
        phases = {self._agents[index].phase for index in drawn}
        if len(phases) > 1:
            raise RuntimeError("the members of the pack made different numbers of updates, so their next ones are not alike")
        return phases.pop()

    def _only(self, drawn: Mapping[int, Drawn], state: Any) -> Any:
        """Returns the stack with the new rows of those that had a batch."""
        learnt = torch.tensor([index in drawn for index in self._rows])
        return map_tensors(
            lambda new, old: torch.where(learnt.to(new.device).view(-1, *[1] * (new.dim() - 1)), new, old), state, self._stack
        )

    def _raw(self, observations: Mapping[int, Array], noise: Mapping[int, tuple[Array, ...]]) -> dict[int, Array]:
        """Returns raw actions [B, ...] of each; one forward pass for all."""
        spare = next(iter(observations))
        rows = [index if index in observations else spare for index in self._rows]
        seen = {index: self._agents[index].normalised(own) for index, own in observations.items()}
        observation = np.stack([seen[index] for index in rows])
        drawn = tuple(np.stack(parts) for parts in zip(*(noise[index] for index in rows), strict=True))
        raw = self._quickly(observation, drawn)
        if raw is None:
            raw = self._stacked_act(observation, drawn)
        return {index: raw[row] for row, index in enumerate(self._rows) if index in observations}

    def _quickly(self, observation: Array, noise: tuple[Array, ...]) -> Array | None:
        vector: Tensor = getattr(self._stack, self._algorithm.actor)
        if vector.device.type != "cpu":
            return None
        if self._arrays is None:
            self._arrays = self._layout.split_array(vector.numpy())
        found: Array | None = self._algorithm.act_arrays(self._arrays, observation, noise)
        return found

    def _stacked_act(self, observation: Array, noise: tuple[Array, ...]) -> Array:
        vector: Tensor = getattr(self._stack, self._algorithm.actor)
        split, act = self._layout.split, self._algorithm.act
        tensors = [torch.from_numpy(one).to(vector.device) for one in (observation, *noise)]
        with torch.inference_mode():
            raw: Tensor = torch.func.vmap(lambda own, rows, *more: act(split(own), rows, more))(vector, *tensors)
        result: Array = raw.cpu().numpy()
        return result


class PackMember:
    """One agent of a pack, as its engine sees it. It does not observe: its collector lets the pack do that for all.

    Args:
        pack: The pack.
        index: Which agent.
    """

    def __init__(self, pack: Pack, index: int) -> None:
        agent = pack.agent(index)
        self.report_names, self.memory = agent.report_names, agent.memory
        self.collect_plan, self.learn_schedule = agent.collect_plan, agent.learn_schedule
        self._pack = pack
        self._index = index

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...]; see `Actor`."""
        return self._pack.agent(self._index).act(observation, explore=explore)

    def observe(self, experience: Experience) -> None:
        """Does nothing."""

    def learn(self, updates: int) -> LearnReport:
        """Makes updates, together with all others."""
        return self._pack.learn(self._index, updates)

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._pack.agent(self._index).learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._pack.agent(self._index).learning_rate = value
        self._pack.changed(self._index)

    def metrics(self) -> Mapping[str, float]:
        """Returns the agent's gauges."""
        return self._pack.agent(self._index).metrics()

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent does not learn."""
        return self._pack.agent(self._index).eval_mode()

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as a module of its own."""
        return self._pack.agent(self._index).acting_module()

    def state_dict(self) -> StateTree:
        """Returns the agent's state, the same as it has alone."""
        return self._pack.agent(self._index).state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the agent to a captured state, of a pack or of an agent alone."""
        self._pack.agent(self._index).load_state_dict(state)
        self._pack.changed(self._index)


def _with_row(stack: Tensor, row: int, own: Tensor) -> Tensor:
    changed = stack.clone()
    changed[row] = own
    return changed
