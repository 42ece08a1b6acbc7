"""Steps a vector environment with an actor.

It owns the episodes in progress and numbers them. An episode's seed is derived from (run seed,
`env`, environment index, episode index) alone, so that any episode can be reproduced. It changes
neither the engine's clock nor the actor's parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from workers.core.protocols import Actor
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.core.types import Array, CollectPlan, EpisodeEnd, Experience, RestoreReport, StateTree
from workers.rl.envs.learner_rewards import LearnerRewards
from workers.rl.envs.slots import give_views
from workers.rl.envs.space_arrays import action_layout, array_layout
from workers.rl.envs.vector import EpisodeVector

_OF_SLOTS: Final = ("_begun", "_returns", "_lengths", "_over", "_current")


@dataclass(slots=True)
class _Buffers:
    """Arrays of one collect, [T, B, ...], allocated once per number of vector steps T."""

    observation: Array
    action: Array
    reward: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    next_observation: Array


class RestorableCollector(ABC):
    """Base class of collectors, whose `restore` reports whether the resume is exact."""

    @abstractmethod
    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the episodes in progress; the report states whether all were reproduced."""

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the episodes in progress, without a report."""
        self.restore(state)


class VectorCollector(RestorableCollector):
    """Collects experience from a vector environment of B slots.

    Args:
        env: The vector environment; nothing else may step it, and the caller closes it. If it is a
            `LearnerRewards`, the experience contains its reported rewards and terminations;
            episode returns and lengths are always computed from the environment's own.
        actor: Chooses the actions, with exploration.
        seed: The run's seed.
        first: Index of the first slot among all environments that the run trains on.
    """

    def __init__(self, env: EpisodeVector, actor: Actor, seed: int, *, first: int = 0) -> None:
        self.env = env
        self._reporting = env if isinstance(env, LearnerRewards) else None
        self.actor = actor
        self._first = first
        self.num_envs = env.num_envs
        self.origins = [(seed, first + index) for index in range(self.num_envs)]
        """(run seed, environment index) of each slot, from which episode seeds are derived."""
        self._begun = np.zeros(self.num_envs, np.int64)
        """Episodes begun per slot; the index of the newest episode is one less."""
        self._returns = np.zeros(self.num_envs, np.float64)
        self._lengths = np.zeros(self.num_envs, np.int64)
        self._uncounted = 0
        """Vector steps that are not yet added to `_lengths`, the same for all slots."""
        self._over = np.ones(self.num_envs, np.bool_)
        self._is_any_over = True
        shape, dtype = array_layout(env.single_observation_space)
        self._current = np.zeros((self.num_envs, *shape), dtype)
        self._buffers: dict[int, _Buffers] = {}
        self._ended: list[EpisodeEnd] = []

    def take(self, collectors: Sequence[Self]) -> None:
        """Continues the episodes of `collectors`, whose slots in order are those of this collector.

        The runs of the collectors may have different seeds.

        Arrays of the collectors become views of this collector's arrays: they can still save and
        restore their episodes (see `flush_counters` and `refresh_after_restore`), but must not step
        any more.
        """
        self.origins = [origin for own in collectors for origin in own.origins]
        give_views(self, collectors, _OF_SLOTS)
        self.refresh_after_restore()

    def flush_counters(self) -> None:
        """Updates episode lengths, which are counted late, before they are read."""
        self._lengths += self._uncounted
        self._uncounted = 0

    def refresh_after_restore(self) -> None:
        """Computes the caches of slot states again, after slots were restored through views."""
        self._is_any_over = bool(self._over.any())

    def collect(self, plan: CollectPlan) -> Experience:
        """Collects experience by the plan; its arrays are valid until the next call."""
        if plan.episodes is not None or plan.needs_whole_episodes:
            return self._collect_episodes(plan)
        steps = plan.vector_steps or -(-(plan.env_steps or 0) // self.num_envs)
        buffers, self._ended = self._buffers_of(steps), []
        for index in range(steps):
            self._step(buffers, index)
        return Experience(
            buffers.observation,
            buffers.action,
            buffers.reward,
            buffers.terminated,
            buffers.truncated,
            buffers.next_observation,
            self._ended,
            env_steps=buffers.reward.size,
        )

    def begin_due_episodes(self) -> Array:
        """Begins episodes in free slots now, instead of before the next step.

        Returns the current observations [B, ...], valid until the next step.
        """
        if self._is_any_over:
            self._begin_episodes(self._over)
            self._over[:] = False
        return self._current

    def state_dict(self) -> StateTree:
        """Returns the episodes in progress and the number of episodes begun in each slot."""
        self.flush_counters()
        return {
            "begun": self._begun,
            "returns": self._returns,
            "lengths": self._lengths,
            "over": self._over,
            "episodes": self.env.save_episodes(),
        }

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the episodes in progress from `state`.

        An episode that its environment does not reproduce is lost, and a new episode begins in its
        slot. If episodes are lost and the actor has a method `mark_lost_episodes`, that is called
        with the mask of their slots, bool [B]. The actor's state and memory must be restored
        before.
        """
        self._begun[:] = state["begun"]
        self._returns[:] = state["returns"]
        self._lengths[:] = state["lengths"]
        self._uncounted = 0
        self._over[:] = state["over"]
        restored = self.env.restore_episodes(state["episodes"])
        lost = [
            i
            for i, result in enumerate(restored)
            if not result.is_reproduced or (result.observation is None and not self._over[i])
        ]
        for index, result in enumerate(restored):
            if result.observation is not None:
                self._current[index] = result.observation
        for index in lost:
            self._over[index] = True
        self.refresh_after_restore()
        notify = getattr(self.actor, "mark_lost_episodes", None)
        if lost and notify is not None:
            notify(np.isin(np.arange(self.num_envs), lost))
        return RestoreReport(
            is_exact=not lost, notes=_notes([self._first + index for index in lost])
        )

    def _step(self, buffers: _Buffers, index: int) -> None:
        """Begins episodes in free slots and makes one vector step into row `index` of `buffers`."""
        if self._is_any_over:
            self._begin_episodes(self._over)
        observation: Array = buffers.observation[index]
        observation[...] = self._current
        actions = self.actor.act(observation, explore=True)
        successor, reward, terminated, truncated = self.env.advance(actions)
        buffers.action[index] = actions
        buffers.reward[index], buffers.terminated[index] = (
            (reward, terminated) if self._reporting is None else self._reporting.reported_step
        )
        buffers.truncated[index] = truncated
        buffers.next_observation[index] = successor
        self._current[...] = successor
        self._returns += reward
        self._uncounted += 1
        np.logical_or(terminated, truncated, out=self._over)
        # This search is ten times as fast as `any`.
        if 1 in self._over.tobytes():
            self.flush_counters()
            self._is_any_over = True
            self._ended.extend(self._ends(index, terminated, self._over))

    def _begin_episodes(self, mask: npt.NDArray[np.bool_]) -> None:
        self.flush_counters()
        slots, seeds = np.flatnonzero(mask).tolist(), [0] * self.num_envs
        for slot in slots:
            seed, index = self.origins[slot]
            seeds[slot] = derive_seed(
                seed, "env", index, int(self._begun[slot]), bits=ENV_SEED_BITS
            )
        first = self.env.begin(mask, seeds)
        # There is usually one slot, and each masked assignment takes as long as the loop.
        for slot in slots:
            self._current[slot] = first[slot]
            self._begun[slot] += 1
            self._returns[slot] = 0.0
            self._lengths[slot] = 0
        self._is_any_over = False

    def _ends(
        self, step: int, terminated: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]
    ) -> list[EpisodeEnd]:
        slots, first, returns, lengths = (
            np.flatnonzero(over).tolist(),
            self._first,
            self._returns,
            self._lengths,
        )
        return [
            EpisodeEnd(first + i, step, float(returns[i]), int(lengths[i]), bool(terminated[i]))
            for i in slots
        ]

    def _collect_episodes(self, plan: CollectPlan) -> Experience:
        """Collects whole episodes; episodes in progress are discarded first and not counted."""
        steps: list[_Buffers] = []
        active_rows: list[npt.NDArray[np.bool_]] = []
        ended: list[EpisodeEnd] = []
        active = np.zeros(self.num_envs, np.bool_)
        begun = 0
        while True:
            begun += self._begin_needed_episodes(
                plan, active, begun, sum(end.episode_length for end in ended)
            )
            if not active.any():
                break
            row = _new_buffers(self.env, 1)
            self._step_active(row, active, len(steps), ended)
            steps.append(row)
            active_rows.append(active.copy())
            active &= ~self._over
        self._over[:] = True
        self._is_any_over = True
        return _stack_steps(steps, active_rows, ended)

    def _begin_needed_episodes(
        self, plan: CollectPlan, active: npt.NDArray[np.bool_], begun: int, finished_steps: int
    ) -> int:
        """Begins episodes in idle slots if the plan needs more episodes; returns how many began."""
        idle = np.flatnonzero(~active)
        if plan.episodes is not None:
            idle = idle[: max(0, plan.episodes - begun)]
        elif finished_steps + int(self._lengths[active].sum()) >= (plan.env_steps or 0):
            return 0
        if idle.size:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[idle] = True
            self._begin_episodes(mask)
            self._over[mask] = False
            active |= mask
        return int(idle.size)

    def _step_active(
        self, row: _Buffers, active: npt.NDArray[np.bool_], step: int, ended: list[EpisodeEnd]
    ) -> None:
        row.observation[0] = self._current
        notify = getattr(self.actor, "set_active_slots", None)
        if notify is not None:
            notify(active)
        actions = self.actor.act(row.observation[0], explore=True)
        successor, reward, terminated, truncated = self.env.advance(actions)
        reported = (
            (reward, terminated) if self._reporting is None else self._reporting.reported_step
        )
        row.action[0], (row.reward[0], row.terminated[0]), row.truncated[0] = (
            actions,
            reported,
            truncated,
        )
        row.next_observation[0] = successor
        self._current[...] = successor
        self._returns[active] += reward[active]
        self._lengths[active] += 1
        self._over[active] = (terminated | truncated)[active]
        ended.extend(self._ends(step, terminated, self._over & active))

    def _buffers_of(self, steps: int) -> _Buffers:
        buffers = self._buffers.get(steps)
        if buffers is None:
            buffers = self._buffers[steps] = _new_buffers(self.env, steps)
        return buffers


def _new_buffers(env: EpisodeVector, steps: int) -> _Buffers:
    shape, dtype = array_layout(env.single_observation_space)
    action_shape, action_dtype = action_layout(env.single_action_space)
    lead = (steps, env.num_envs)
    return _Buffers(
        np.zeros((*lead, *shape), dtype),
        np.zeros((*lead, *action_shape), action_dtype),
        np.zeros(lead, np.float64),
        np.zeros(lead, np.bool_),
        np.zeros(lead, np.bool_),
        np.zeros((*lead, *shape), dtype),
    )


def _stack_steps(
    steps: list[_Buffers], active_rows: list[npt.NDArray[np.bool_]], ended: list[EpisodeEnd]
) -> Experience:
    active = np.stack(active_rows)
    return Experience(
        np.concatenate([row.observation for row in steps]),
        np.concatenate([row.action for row in steps]),
        np.concatenate([row.reward for row in steps]),
        np.concatenate([row.terminated for row in steps]),
        np.concatenate([row.truncated for row in steps]),
        np.concatenate([row.next_observation for row in steps]),
        ended,
        active,
        int(active.sum()),
    )


def _notes(lost: list[int]) -> tuple[tuple[str, str], ...]:
    if not lost:
        return ()
    which = ", ".join(map(str, lost[:8])) + (", …" if len(lost) > 8 else "")
    message = (
        f"Environments {which} did not repeat their episode from its seed and actions: the "
        "environment is not deterministic, "
    )
    return (
        (
            "env_not_deterministic",
            message + "so these episodes begin again and the resume is statistical.",
        ),
    )
