"""A pack: agents of one definition with different seeds, which act and learn as one batch.

The pack makes two steps for all of them at once: the forward pass of acting, and the update,
stacked over the agents by `vmap`. What else they do as one - exploring, storing, sampling - is the
business of `replay_agents` and `rollout_agents` beside it. What each draws, stores and reports is
what it would by itself, from its own generators.

All members are to be asked in turn, each as often as the others: the first that is asked makes the
step for all, and the others find theirs done. n agents in the pack, m of them that have not left, B
environments of each.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from workers.acceleration.compiled_update import Held
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import stacked
from workers.core.types import Array, CompileMode, Experience, LearnReport, StateTree
from workers.rl.agents.common.learning_state import learning_rates, with_learning_rates
from workers.rl.agents.packs.packed_agents import PackedAgents
from workers.rl.agents.packs.replay_agents import PackedReplayAgents
from workers.rl.agents.packs.rollout_agents import PackedRolloutAgents
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.agents.shells.rollout_agent import RolloutAgent
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.parameter_layout import Layout

Packable = ReplayAgent | RolloutAgent
"""An agent that can be a member."""


WORTH_CODE: Final = 100_000
"""Parameters of policies that left the pack, from which on code for fewer rows is worth compiling.

With less, an update of all rows takes little longer, and compiling as long as some ten thousand
updates.
"""


class Pack:
    """The agents of a pack.

    Args:
        agents: At least one, of one definition, on the CPU or all on one device, whose memories are
            empty.
        mode: How the stacked update runs.
    """

    def __init__(self, agents: Sequence[Any], mode: CompileMode) -> None:
        first = agents[0]
        self._agents: list[Packable] = list(agents)
        self._together: PackedAgents[Any] = (
            PackedReplayAgents(agents)
            if isinstance(first, ReplayAgent)
            else PackedRolloutAgents(agents)
        )
        self._algorithm: Any = first.algorithm
        self._layout: Layout = first.algorithm.layouts[first.algorithm.actor]
        cycle = self._algorithm.cycle
        held = None if self._together.some_may_wait else Held()  # theirs is the state before
        updates = {update: stacked(update, mode=mode, held=held) for update in cycle}
        self._cycle = [updates[update] for update in cycle]
        self._rows = list(range(len(agents)))
        """Which agent each row of the stack is of: of those that left too, where code was made for
        so many rows; see `WORTH_CODE`.
        """
        self._is_compiled = mode != "eager"
        self.live = list(self._rows)
        """Members that have not left, in order."""
        self._filling: list[int] | None = None
        """For each row the place of an agent among the live ones, for rows of those that left that
        of any; `None` where all are live.
        """
        self._stack: Any = map_tensors(
            lambda *rows: torch.stack(rows), *(agent.learning_state for agent in agents)
        )
        self._behind = [False] * len(agents)
        """Which agents do not hold their row of the stack yet."""
        self._reports: dict[int, LearnReport] = {}
        self._arrays: Mapping[str, Array] | None = None

    @property
    def members(self) -> list["PackMember"]:
        """Returns what stands for each agent towards its engine, in order."""
        return [PackMember(self, index) for index in range(len(self._agents))]

    def counted(self, index: int) -> Packable:
        """Returns an agent whose counters and generators are current, though not its parameters."""
        self._together.settle()
        return self._agents[index]

    def agent(self, index: int) -> Packable:
        """Returns an agent, with its own row of the stack."""
        agent = self.counted(index)
        if self._behind[index]:
            self._behind[index] = False
            row = self._rows.index(index)
            agent.learning_state = map_tensors(lambda leaf: leaf[row].clone(), self._stack)
        return agent

    def load(self, index: int, state: StateTree) -> None:
        """Brings an agent to a captured state, of a pack or of an agent alone."""
        self.agent(index).load_state_dict(state)
        self._together.moved()
        row = self._rows.index(index)
        self._arrays = None
        self._stack = map_tensors(
            lambda leaf, own: _with_row(leaf, row, own),
            self._stack,
            self._agents[index].learning_state,
        )

    def set_learning_rate(self, index: int, value: float) -> None:
        """Sets the step size of an agent's next update."""
        agent, row = self._agents[index], self._rows.index(index)
        agent.learning_rate = value
        rates = zip(learning_rates(self._stack), learning_rates(agent.learning_state), strict=True)
        self._stack = with_learning_rates(
            self._stack, (_with_row(every, row, own) for every, own in rates)
        )

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns exploring actions [m * B, ...] of the live members."""
        assert explore
        members, together = len(self.live), self._together
        actions = together.random_actions(len(observation))
        if actions is not None:
            return actions
        seen = together.normalised(observation.reshape(members, -1, *observation.shape[1:]))
        return together.explored(self._raw(seen, together.acting_noise(seen.shape[1])))

    def observe(self, experience: Experience) -> None:
        """Lets the live members store what was gathered for them, [T, m * B, ...]."""
        self._together.observe(experience)

    def learn(self, index: int, updates: int) -> LearnReport:
        """Returns what one member's learning gave; the first that asks lets all of them learn.

        Raises:
            RuntimeError: If the members are not asked in turn.
        """
        if index not in self._reports:
            if self._reports:
                raise RuntimeError(
                    f"members {sorted(self._reports)} of the pack did not ask for what they "
                    "learnt: they are out of step"
                )
            self._learn(updates)
        return self._reports.pop(index)

    def leave(self, index: int) -> None:
        """Lets a member go: it keeps what it learnt, and the others go on without it."""
        self.agent(index)
        self.live.remove(index)
        self._reports.pop(index, None)
        if not self.live:
            return
        self._together.keep(self.live)
        if self._should_shrink():
            kept = [row for row, index in enumerate(self._rows) if index in self.live]
            self._rows = list(self.live)
            self._stack = map_tensors(lambda leaf: leaf[kept], self._stack)
            self._arrays = None
        self._filling = [
            self.live.index(index) if index in self.live else 0 for index in self._rows
        ]
        if len(self._rows) == len(self.live):
            self._filling = None

    # Private

    def _learn(self, updates: int) -> None:
        for batch, has_one in self._together.batches(
            updates, lambda: map_tensors(self._of_live, self._stack)
        ):
            made = self._together.phase
            state, reports, errors = self._cycle[made % len(self._cycle)](
                self._stack, self._filled(batch)
            )
            state = self._algorithm.between(state, made + 1)
            state = state if has_one is None else self._only(has_one, state)
            if state is not self._stack:
                self._stack, self._arrays = state, None
            self._together.note(*map(self._of_live, (reports, errors)))
            for index in self.live:
                self._behind[index] = True
        self._reports = dict(zip(self.live, self._together.concluded(), strict=True))

    def _should_shrink(self) -> bool:
        freed = len(self._rows) - len(self.live)
        worth = freed * self._layout.size >= WORTH_CODE and freed >= len(self.live)
        return worth or not self._is_compiled

    def _filled(self, batch: object) -> Any:
        """Returns a batch [m, ...] of the live members with rows for all of the stack."""
        filling = self._filling
        return batch if filling is None else map_tensors(lambda leaf: leaf[filling], batch)

    def _of_live(self, rows: Any) -> Any:
        """Returns those rows of an array or tensor that are of live members."""
        if self._filling is None:
            return rows
        return rows[[row for row, index in enumerate(self._rows) if index in self.live]]

    def _only(self, has_one: Array, state: Any) -> Any:
        """Returns the stack with the new rows of those that had a batch, bool [m]."""
        learnt = torch.from_numpy(has_one if self._filling is None else has_one[self._filling])
        return map_tensors(
            lambda new, old: torch.where(
                learnt.to(new.device).view(-1, *[1] * (new.dim() - 1)), new, old
            ),
            state,
            self._stack,
        )

    def _raw(self, observation: Array, noise: tuple[Array, ...]) -> Array:
        """Returns raw actions [m, B, ...] for observations [m, B, ...].

        One forward pass for all.
        """
        if self._filling is not None:
            observation, noise = (
                observation[self._filling],
                tuple(part[self._filling] for part in noise),
            )
        raw = self._quickly(observation, noise)
        if raw is None:
            raw = self._stacked_act(observation, noise)
        own: Array = self._of_live(raw)
        return own

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
            raw: Tensor = torch.func.vmap(lambda own, rows, *more: act(split(own), rows, more))(
                vector, *tensors
            )
        result: Array = raw.cpu().numpy()
        return result


class PackMember:
    """One agent of a pack, as its engine sees it.

    It does not observe: its collector lets the pack do that for all.

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

    def episodes_lost(self, lost: npt.NDArray[np.bool_]) -> None:
        """Says in which environments, bool [B], the next experience does not continue the last."""
        self._pack.counted(self._index).episodes_lost(lost)

    def learn(self, updates: int) -> LearnReport:
        """Makes updates, together with all others."""
        return self._pack.learn(self._index, updates)

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._pack.counted(self._index).learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._pack.set_learning_rate(self._index, value)

    def metrics(self) -> Mapping[str, float]:
        """Returns the agent's gauges."""
        return self._pack.counted(self._index).metrics()

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent does not learn."""
        return self._pack.counted(self._index).eval_mode()

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as a module of its own."""
        return self._pack.agent(self._index).acting_module()

    def state_dict(self) -> StateTree:
        """Returns the agent's state, the same as it has alone."""
        return self._pack.agent(self._index).state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the agent to a captured state, of a pack or of an agent alone."""
        self._pack.load(self._index, state)


def _with_row(stack: Tensor, row: int, own: Tensor) -> Tensor:
    changed = stack.clone()
    changed[row] = own
    return changed
