"""A pack: agents of one definition with different seeds, which act and learn as one batch.

The pack computes two steps for all agents at once, stacked by `vmap`: the forward pass of acting,
and the update. Exploring, storing and sampling are in `replay_agents` and `rollout_agents`. Each
agent draws from its own generators, so it draws, stores and reports the same as when it trains
alone.

Callers must call `learn` for every live member, equally often: the first call makes the updates of
all members, and the calls for the other members return their reports. n agents in the pack, m live
ones (that have not left), B environments of each.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from palestra.contract.names import CompileMode
from workers.acceleration.compiled_update import StateBuffers
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import make_stacked_runner
from workers.core.types import Array, Experience, LearnReport, StateTree
from workers.rl.agents.common.learning_state import learning_rates, replace_learning_rates
from workers.rl.agents.packs.packed_agents import PackedAgents
from workers.rl.agents.packs.replay_agents import PackedReplayAgents
from workers.rl.agents.packs.rollout_agents import PackedRolloutAgents
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.agents.shells.rollout_agent import RolloutAgent
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.parameter_layout import Layout

Packable = ReplayAgent | RolloutAgent
"""Types of agents that can be members of a pack."""


WORTH_CODE: Final = 100_000
"""Number of policy parameters in the rows of agents that left from which on the stack is shrunk.

A smaller stack needs newly compiled code. Below this number an update of all rows takes little
longer than one of the live rows, while compiling takes as long as some ten thousand updates.
"""


class Pack:
    """Acts and learns for all agents of a pack with one stacked learning state.

    Args:
        agents: At least one, of one definition, on the CPU or all on one device, whose memories are
            empty.
        mode: Whether and how the stacked update is compiled.
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
        # Agents without a batch keep their previous state, so it must not be updated in place.
        held = None if self._together.may_agents_wait else StateBuffers()
        updates = {update: make_stacked_runner(update, mode=mode, buffers=held) for update in cycle}
        self._cycle = [updates[update] for update in cycle]
        self._rows = list(range(len(agents)))
        """Index of the agent in each row of the stack, including agents that left the pack while
        the stack keeps their rows; see `WORTH_CODE`.
        """
        self._is_compiled = mode != "eager"
        self.live = list(self._rows)
        """Indices of the agents that have not left, in ascending order."""
        self._filling: list[int] | None = None
        """For each row of the stack the position of its agent in `live`; 0, as padding, for rows of
        agents that left. `None` if all rows are of live agents.
        """
        self._stack: Any = map_tensors(
            lambda *rows: torch.stack(rows), *(agent.learning_state for agent in agents)
        )
        self._behind = [False] * len(agents)
        """bool [n] as a list: whether an agent's own learning state is older than its row."""
        self._reports: dict[int, LearnReport] = {}
        self._arrays: Mapping[str, Array] | None = None

    @property
    def members(self) -> list["PackMember"]:
        """One `PackMember` per agent, in order, for the agent's engine."""
        return [PackMember(self, index) for index in range(len(self._agents))]

    def agent_with_counters(self, index: int) -> Packable:
        """Returns an agent with current counters and generators; its parameters may be outdated."""
        self._together.write_back()
        return self._agents[index]

    def agent(self, index: int) -> Packable:
        """Returns an agent with current counters, generators and learning state."""
        agent = self.agent_with_counters(index)
        if self._behind[index]:
            self._behind[index] = False
            row = self._rows.index(index)
            agent.learning_state = map_tensors(lambda leaf: leaf[row].clone(), self._stack)
        return agent

    def load(self, index: int, state: StateTree) -> None:
        """Restores the state of an agent, which may have been saved in a pack or by a single run.

        Args:
            index: Index of the agent in the pack.
            state: What `PackMember.state_dict` or the agent's `state_dict` returned.
        """
        self.agent(index).load_state_dict(state)
        self._together.discard_joined()
        row = self._rows.index(index)
        self._arrays = None
        self._stack = map_tensors(
            lambda leaf, own: _replace_row(leaf, row, own),
            self._stack,
            self._agents[index].learning_state,
        )

    def set_learning_rate(self, index: int, value: float) -> None:
        """Sets the step size of an agent's next update."""
        agent, row = self._agents[index], self._rows.index(index)
        agent.learning_rate = value
        rates = zip(learning_rates(self._stack), learning_rates(agent.learning_state), strict=True)
        self._stack = replace_learning_rates(
            self._stack, (_replace_row(every, row, own) for every, own in rates)
        )

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns exploring actions [m * B, ...] of the live members."""
        assert explore
        members, together = len(self.live), self._together
        actions = together.random_actions(len(observation))
        if actions is not None:
            return actions
        seen = together.normalise_step(observation.reshape(members, -1, *observation.shape[1:]))
        return together.explore_actions(self._raw(seen, together.acting_noise(seen.shape[1])))

    def observe(self, experience: Experience) -> None:
        """Stores the experience [T, m * B, ...] of the live members in their memories."""
        self._together.observe(experience)

    def learn(self, index: int, updates: int) -> LearnReport:
        """Returns a member's report; the first call of a round makes the updates of all members.

        Args:
            index: Index of the agent in the pack.
            updates: Maximum number of updates of each member.

        Raises:
            RuntimeError: If the reports of the previous round were not all taken.
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
        """Removes a member, which keeps its learning state; the other members continue."""
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
            updates, lambda: map_tensors(self._select_live_rows, self._stack)
        ):
            made = self._together.phase
            state, reports, errors = self._cycle[made % len(self._cycle)](
                self._stack, self._pad_batch(batch)
            )
            state = self._algorithm.copy_targets(state, made + 1)
            state = state if has_one is None else self._replace_rows(has_one, state)
            if state is not self._stack:
                self._stack, self._arrays = state, None
            self._together.note(*map(self._select_live_rows, (reports, errors)))
            for index in self.live:
                self._behind[index] = True
        self._reports = dict(zip(self.live, self._together.take_report(), strict=True))

    def _should_shrink(self) -> bool:
        freed = len(self._rows) - len(self.live)
        is_worth_compiling = freed * self._layout.size >= WORTH_CODE and freed >= len(self.live)
        return is_worth_compiling or not self._is_compiled

    def _pad_batch(self, batch: object) -> Any:
        """Pads a batch [m, ...] of the live members to one row per row of the stack."""
        filling = self._filling
        return batch if filling is None else map_tensors(lambda leaf: leaf[filling], batch)

    def _select_live_rows(self, rows: Any) -> Any:
        """Returns the rows of the live members, [m, ...], of an array or tensor."""
        if self._filling is None:
            return rows
        return rows[[row for row, index in enumerate(self._rows) if index in self.live]]

    def _replace_rows(self, has_one: Array, state: Any) -> Any:
        """Returns the stack with new rows for members that had a batch, and the old rows otherwise.

        `has_one` is the mask bool [m] of members that had a batch.
        """
        learnt = torch.from_numpy(has_one if self._filling is None else has_one[self._filling])
        return map_tensors(
            lambda new, old: torch.where(
                learnt.to(new.device).view(-1, *[1] * (new.dim() - 1)), new, old
            ),
            state,
            self._stack,
        )

    def _raw(self, observation: Array, noise: tuple[Array, ...]) -> Array:
        """Returns raw actions [m, B, ...] for observations [m, B, ...], in one forward pass."""
        if self._filling is not None:
            observation, noise = (
                observation[self._filling],
                tuple(part[self._filling] for part in noise),
            )
        raw = self._act_in_numpy(observation, noise)
        if raw is None:
            raw = self._act_stacked(observation, noise)
        own: Array = self._select_live_rows(raw)
        return own

    def _act_in_numpy(self, observation: Array, noise: tuple[Array, ...]) -> Array | None:
        vector: Tensor = getattr(self._stack, self._algorithm.actor)
        if vector.device.type != "cpu":
            return None
        if self._arrays is None:
            self._arrays = self._layout.split_array(vector.numpy())
        found: Array | None = self._algorithm.act_arrays(self._arrays, observation, noise)
        return found

    def _act_stacked(self, observation: Array, noise: tuple[Array, ...]) -> Array:
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
    """One agent of a pack, with the interface that its engine expects.

    Its `observe` does nothing: the pack's collector calls `Pack.observe` for all members.

    Args:
        pack: The pack.
        index: Index of the agent in the pack.
    """

    def __init__(self, pack: Pack, index: int) -> None:
        agent = pack.agent(index)
        self.report_names, self.memory = agent.report_names, agent.memory
        self.collect_plan, self.learn_schedule = agent.collect_plan, agent.learn_schedule
        self._pack = pack
        self._index = index

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...] of this agent alone; see `Actor`."""
        return self._pack.agent(self._index).act(observation, explore=explore)

    def observe(self, experience: Experience) -> None:
        """Does nothing: the collector calls `Pack.observe` for all members."""

    def mark_lost_episodes(self, lost: npt.NDArray[np.bool_]) -> None:
        """Marks the environments, bool [B], whose next transition does not continue the last."""
        self._pack.agent_with_counters(self._index).mark_lost_episodes(lost)

    def learn(self, updates: int) -> LearnReport:
        """Makes at most `updates` updates, together with all members; see `Pack.learn`."""
        return self._pack.learn(self._index, updates)

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        return self._pack.agent_with_counters(self._index).learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._pack.set_learning_rate(self._index, value)

    def metrics(self) -> Mapping[str, float]:
        """Returns the agent's metrics by series name."""
        return self._pack.agent_with_counters(self._index).metrics()

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent does not learn."""
        return self._pack.agent_with_counters(self._index).eval_mode()

    def sample_actions(
        self, seed: int, rows: Sequence[np.random.Generator]
    ) -> AbstractContextManager[None]:
        """Returns a context in which evaluations draw their actions; see `StochasticActor`."""
        return self._pack.agent(self._index).sample_actions(seed, rows)

    def acting_module(self) -> ActingModule:
        """Returns the greedy policy as an exportable module with a copy of its parameters."""
        return self._pack.agent(self._index).acting_module()

    def state_dict(self) -> StateTree:
        """Returns the agent's state, in the same form as that of a single run."""
        return self._pack.agent(self._index).state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the agent's state, which may have been saved in a pack or by a single run."""
        self._pack.load(self._index, state)


def _replace_row(stack: Tensor, row: int, value: Tensor) -> Tensor:
    changed = stack.clone()
    changed[row] = value
    return changed
