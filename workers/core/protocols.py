"""Protocols of the trainer's parts. `workers.engine` uses parts only through these protocols.

Dimensions: T vector steps, B environments. Unless said otherwise a part is used by one thread, and
state that `state_dict` returns may share memory with the part: a caller that stores it copies it
before the part is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import numpy as np

from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    EpisodeEnd,
    EvaluationResult,
    Experience,
    LearnReport,
    LearnSchedule,
    RestoreReport,
    SnapshotReason,
    StateTree,
    StopReason,
)


@runtime_checkable
class Stateful(Protocol):
    """An object whose state is saved in snapshots."""

    def state_dict(self) -> StateTree:
        """Returns all state that a resumed run depends on."""

    def load_state_dict(self, state: StateTree) -> None:
        """Restores a newly built part of the same definition from `state`, bit-exactly."""


class Actor(Protocol):
    """Chooses actions. Must touch neither the environment nor the clock."""

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns one action per observation.

        Args:
            observation: [B, ...]; borrowed for the call. B may differ from the training
                environment's when `explore` is false.
            explore: True while collecting training data. With false the choice is greedy (the mode
                of a policy), draws no random number and changes no state of the actor: no counter,
                no normaliser, no recurrent state of training.

        Returns:
            [B, ...], int64 for discrete spaces, else the dtype of the action space, within its
                bounds; the caller owns it.
        """


@runtime_checkable
class StochasticActor(Protocol):
    """An actor whose policy is a distribution over actions."""

    def sample_actions(
        self, seed: int, rows: Sequence[np.random.Generator]
    ) -> AbstractContextManager[None]:
        """Returns a context in which `act` draws from the policy where `explore` is false.

        It changes no state of the training.

        Args:
            seed: Seed for agents that draw by the global generators, which the caller restores.
            rows: Generator of each row of the observations, by which the others draw. The caller
                may replace them between two calls of `act`.
        """


class ExperienceMemory(Stateful, Protocol):
    """Stored transitions: a replay ring or a rollout.

    Saved separately from the agent, and only if the definition requests it.
    """

    @property
    def capacity(self) -> int:
        """Maximum number of transitions that are stored."""

    def __len__(self) -> int:
        """Returns the number of stored transitions."""


class Learner(Protocol):
    """Stores experience and updates parameters. Must not decide when it is called."""

    @property
    def collect_plan(self) -> CollectPlan:
        """The amount that the engine collects between two observations.

        The engine collects less if a budget, an evaluation or a learn comes before its end.
        """

    @property
    def learn_schedule(self) -> LearnSchedule:
        """When the engine calls `learn`."""

    @property
    def report_names(self) -> tuple[str, ...]:
        """Series name of each value of a `LearnReport`; constant over the agent's lifetime.

        Losses begin with `loss/`.
        """

    def observe(self, experience: Experience) -> None:
        """Copies what is needed of `experience` into the memory.

        T is at least 1 and at most what the plan allows. An on-policy learner stores experience
        until `learn` is called, which uses all of it and empties the memory.
        """

    def learn(self, updates: int) -> LearnReport:
        """Makes at most `updates` optimiser steps, without waiting for the device."""


class TrainableAgent(Actor, Learner, Stateful, Protocol):
    """Actor and learner of one definition. Independent of files, hooks and servers.

    `state_dict` holds parameters, targets, optimiser state, schedules' counters and the agent's own
    generators, but not the memory. An agent draws from generators of its own, derived from the
    run's seed, never from the global ones.
    """

    @property
    def memory(self) -> ExperienceMemory:
        """The stored transitions."""

    @property
    def learning_rate(self) -> float:
        """Step size of the next update; a hook may set it between two updates."""

    @learning_rate.setter
    def learning_rate(self, value: float) -> None: ...

    def metrics(self) -> Mapping[str, float]:
        """Returns gauges by series name, such as `explore/epsilon` or `memory/size`.

        Called only when a window closes; must not synchronise the device.
        """

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent does not learn.

        Leaving the context restores the previous mode, also after an exception.
        """

    def acting_module(self) -> Any:
        """Returns a `torch.nn.Module` that maps observations [N, ...] to greedy actions [N, ...].

        It is on the CPU and in eval mode.

        It holds a copy of all that is needed to act and nothing else, and can be exported by
        `torch.export` with a dynamic N.
        """


class Collector(Stateful, Protocol):
    """Steps the training environment with an actor and keeps its state between calls.

    Environments whose episode ended are reset before their next step, so that the last observation
    of the episode is available until then.
    """

    @property
    def num_envs(self) -> int:
        """Number B of environments."""

    def collect(self, plan: CollectPlan) -> Experience:
        """Collects experience; its arrays are valid until the next call."""

    def restore(self, state: StateTree) -> RestoreReport:
        """Like `load_state_dict`, and returns which environments could not be restored exactly."""


class ClockView(Protocol):
    """Read-only view of the counters of a run."""

    @property
    def env_steps(self) -> int: ...
    @property
    def updates(self) -> int: ...
    @property
    def iterations(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def wall_seconds(self) -> float:
        """Seconds of training over all attempts."""


class EngineView(Protocol):
    """The part of the engine that hooks may use.

    Requests take effect within the same boundary.
    """

    @property
    def clock(self) -> ClockView: ...
    @property
    def agent(self) -> TrainableAgent: ...

    def request_stop(self, reason: StopReason, message: str | None = None) -> None:
        """Ends the run at this boundary. The first requested reason is kept.

        Args:
            reason: Why the run ends.
            message: What the user sees of a failure; `None` for the text of the reason.
        """

    def record_note(self, code: str, message: str) -> None:
        """Records a notice that the run's page shows."""

    def request_evaluation(self) -> None:
        """Makes an evaluation due at this boundary.

        If it is called during this boundary's evaluation or later, the next boundary evaluates.
        """

    def request_snapshot(self) -> None:
        """Makes a periodic snapshot due at this boundary.

        It is due at the next boundary if this boundary's snapshot step has already passed.
        """


class Hook(Protocol):
    """An object that the engine calls at events of a training.

    A hook defines any of these methods; the engine calls no others:

    - `on_start(view)`: before the first iteration of an attempt, after a resume too;
    - `on_tick(view, reports)`: after each iteration, with the learn reports since the last
      boundary, often none;
    - `on_episode(view, end)`: for each `EpisodeEnd` of the iteration;
    - `on_evaluation(view, result)`: after each evaluation, before it is recorded;
    - `on_snapshot(view, snapshot_id)`: after each snapshot;
    - `on_finish(view, reason)`: once at the end, before the last snapshot.

    A hook with `state_dict` and `load_state_dict` has its state saved.
    """


class Evaluator(Protocol):
    """Evaluates an actor on an environment of its own.

    Changes neither the actor nor any generator that training uses.
    """

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation.

        Its episodes derive from the run's seed and the clock, so a resumed run repeats them.
        """


@runtime_checkable
class BackgroundEvaluator(Protocol):
    """An evaluator that can run in the background of training."""

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation and waits for it."""

    def begin(self, clock: ClockView) -> None:
        """Starts an evaluation of the current state in the background.

        Later training does not affect it. Only one evaluation may run at a time.
        """

    def take_result(self, *, wait: bool) -> EvaluationResult | None:
        """Returns the result of the background evaluation.

        `None` if it is not available yet, or if no evaluation was started.
        """


class Snapshotter(Protocol):
    """Writes snapshots and deletes old ones."""

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes one complete snapshot before it returns.

        Args:
            state: The engine's `state_dict`; borrowed for the call.
            clock: The counters at this state.
            reason: Why the snapshot is written.
            score: Mean return of an evaluation made at exactly this state.

        Returns:
            The snapshot's id.

        Raises:
            OSError: If the disk is full or fails; older snapshots are not changed.
        """


class Recorder(Stateful, Protocol):
    """Records all numbers of the training loop.

    No call waits for the network; the device is synchronised only when a window closes.
    """

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Records the episodes and updates of one iteration.

        Args:
            clock: The counters after the iteration.
            episodes: The episodes that ended, each with its last env_step; the last one is episode
                number `clock.episodes`.
            reports: The reports of the iteration's updates.
        """

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Records an evaluation; `is_final` marks the one at the end of the run."""

    def record_epoch(self, clock: ClockView) -> None:
        """Records the end of an epoch; `clock.epochs` is the number of finished epochs."""

    def record_note(self, code: str, message: str) -> None:
        """Records a notice about the run."""

    def flush(self) -> None:
        """Writes all records so far to disk, so that they survive a kill of the process.

        Closes no window.
        """


class Control(Protocol):
    """A request from outside to stop: an attribute that a watcher thread sets.

    The loop reads it.
    """

    @property
    def order(self) -> StopReason | None:
        """`PAUSE`, `CANCEL`, `DRAIN` or `TIME_LIMIT`; `None` to continue."""

    def acknowledge(self, reason: StopReason) -> None:
        """Acknowledges the order: the loop is about to save a snapshot and stop."""


class Trigger(Stateful, Protocol):
    """Determines when an event is due."""

    @property
    def next(self) -> int:
        """The counter value at which the trigger is due next, in its unit; 2**63 if unknown."""

    @property
    def quiet_until(self) -> int:
        """The number of env_steps before which the trigger becomes due only when an epoch closes.

        0 if it must be checked at every boundary.
        """

    def take_due(self, clock: ClockView) -> int:
        """Returns how many times the trigger became due since the last call."""


AgentFactory = Callable[[Any, AgentContext], TrainableAgent]
"""Builds an agent from its parameters (`DqnParameters`, `PpoParameters`) and its context.

Raises `DefinitionError` if the agent does not support the spaces.

Examples of built-in factories: `workers.rl.agents.dqn.build` and `workers.rl.agents.ppo.build`.
"""

Advance = Callable[[], bool]
"""Ends the engine's iteration after a step of the agent's own loop.

Returns False if the training is over, so that the loop must make no more steps.
"""

AgentLoop = Callable[[Advance], None]
"""The loop of an agent that steps its environment by itself.

It calls `Advance` after each step, and returns when `Advance` returns False.
"""

TimeSource = Callable[[], float]
"""A monotonic clock in seconds; injected."""
