"""What the parts of the trainer owe one another. `workers.engine` knows these and nothing else.

Dimensions: T vector steps, B environments. Unless said otherwise a part is used by one thread, and
state that it hands out in `state_dict` may share memory with the part: whoever keeps it copies it
before the part is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

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
    """Anything whose state goes into a snapshot."""

    def state_dict(self) -> StateTree:
        """Returns all state that the continuation depends on."""

    def load_state_dict(self, state: StateTree) -> None:
        """Brings a freshly built part of the same definition to `state`, bit-exactly."""


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


class ExperienceMemory(Stateful, Protocol):
    """Stored transitions: a replay ring or a rollout.

    Saved apart from the agent, and only where the definition says so.
    """

    @property
    def capacity(self) -> int:
        """Most transitions that are kept."""

    def __len__(self) -> int:
        """Returns the number of transitions kept."""


class Learner(Protocol):
    """Stores experience and updates parameters. Must not decide when it is called."""

    @property
    def collect_plan(self) -> CollectPlan:
        """The amount that the engine collects between two observations.

        It is less where a budget, an evaluation or a learn comes before.
        """

    @property
    def learn_schedule(self) -> LearnSchedule:
        """When the engine calls `learn`."""

    @property
    def report_names(self) -> tuple[str, ...]:
        """Series name of each value of a `LearnReport`, the same during the whole life.

        Losses begin with `loss/`.
        """

    def observe(self, experience: Experience) -> None:
        """Copies what is needed of `experience` into the memory.

        T may be anything from 1 to the plan's. An on-policy learner gathers until `learn` is
        called, which takes everything gathered and empties it.
        """

    def learn(self, updates: int) -> LearnReport:
        """Makes at most `updates` optimiser steps, without waiting for the device."""


class TrainableAgent(Actor, Learner, Stateful, Protocol):
    """Actor and learner of one definition. Knows nothing of files, hooks and servers.

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

        Asked only when a window closes; must not sync the device.
        """

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which the agent does not learn.

        The previous mode comes back however it is left.
        """

    def acting_module(self) -> Any:
        """Returns a `torch.nn.Module` that maps observations [N, ...] to greedy actions [N, ...].

        It is on the CPU and in eval mode.

        It holds a copy of all that is needed to act and nothing else, and can be exported by
        `torch.export` with a dynamic N.
        """


class Collector(Stateful, Protocol):
    """Steps the training environment with an actor and keeps its state between calls.

    Ended slots are reset lazily, before their next step, so the last observation of an episode can
    be seen by everyone first.
    """

    @property
    def num_envs(self) -> int:
        """B."""

    def collect(self, plan: CollectPlan) -> Experience:
        """Gathers experience; its arrays are valid until the next call."""

    def restore(self, state: StateTree) -> RestoreReport:
        """Like `load_state_dict`, and returns which environments could not be restored exactly."""


class ClockView(Protocol):
    """The counters of a run, as others may read them."""

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
    """What a hook sees of the engine, and what it may ask for.

    Requests are honoured within the same boundary.
    """

    @property
    def clock(self) -> ClockView: ...
    @property
    def agent(self) -> TrainableAgent: ...

    def request_stop(self, reason: StopReason) -> None:
        """Ends the run at this boundary. The first reason asked for wins."""

    def request_evaluation(self) -> None:
        """Makes an evaluation due at this boundary.

        Where it is called within an evaluation or later, it is due at the next boundary.
        """

    def request_snapshot(self) -> None:
        """Makes a periodic snapshot due at this boundary, or at the next one when asked later."""


class Hook(Protocol):
    """Looks on and may ask for something.

    A hook defines any of these methods; those that it lacks cost nothing:

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
    """An evaluator whose work goes on beside training."""

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation and waits for it."""

    def begin(self, clock: ClockView) -> None:
        """Begins the evaluation of the present state.

        What training does afterwards does not touch it. One at a time.
        """

    def finished(self, *, wait: bool) -> EvaluationResult | None:
        """Returns the result of what was begun.

        `None` where it is not there yet, or nothing was begun.
        """


class Snapshotter(Protocol):
    """Writes and keeps snapshots."""

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes one complete snapshot before it returns.

        Args:
            state: The engine's `state_dict`; borrowed for the call.
            clock: The counters at this state.
            reason: Why it is written.
            score: Mean return of an evaluation made at exactly this state.

        Returns:
            The snapshot's id.

        Raises:
            OSError: If the disk is full or fails; older snapshots are as they were.
        """


class Recorder(Stateful, Protocol):
    """The only way in which a number leaves the loop.

    No call waits for the network, and none syncs the device but where a window closes.
    """

    def tick(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Records one iteration.

        Args:
            clock: The counters after the iteration.
            episodes: What ended, each with the env_step at which it did; the last one is episode
                number `clock.episodes`.
            reports: What was learnt.
        """

    def evaluation(self, clock: ClockView, result: EvaluationResult, *, final: bool) -> None:
        """Records an evaluation."""

    def epoch(self, clock: ClockView) -> None:
        """Records the end of an epoch; `clock.epochs` is the number of finished epochs."""

    def flush(self) -> None:
        """Puts everything recorded so far where a killed process cannot lose it.

        Closes no window.
        """


class Control(Protocol):
    """A request from outside to stop: an attribute that a watcher thread sets.

    The loop reads it.
    """

    @property
    def order(self) -> StopReason | None:
        """`PAUSE`, `CANCEL`, `DRAIN` or `TIME_LIMIT`; `None` to go on."""

    def acknowledge(self, reason: StopReason) -> None:
        """Says that the loop has seen the order and is about to save and stop."""


class Trigger(Stateful, Protocol):
    """Says when something is due."""

    @property
    def next(self) -> int:
        """Where it becomes due next, in its unit; 2**63 where that is not known."""

    @property
    def quiet_until(self) -> int:
        """env_steps below which the trigger becomes due only where an epoch closes.

        0 where it has to be asked always.
        """

    def due(self, clock: ClockView) -> int:
        """Returns how many times it became due since it was last asked, 0 for not at all."""


AgentFactory = Callable[[Any, AgentContext], TrainableAgent]
"""Builds an agent from its parameters (`DqnParameters`, `PpoParameters`) and its context.

Raises `DefinitionError` where spaces do not fit.

The built-in ones are `workers.rl.agents.dqn.build` and `workers.rl.agents.ppo.build`.
"""

Advance = Callable[[], bool]
"""Lets the engine end the iteration of the step that was made last.

False where the training is over, so that no more steps are made.
"""

OwnLoop = Callable[[Advance], None]
"""The loop of an agent that steps its environment by itself.

It calls `Advance` between two steps, and returns where that says false.
"""

TimeSource = Callable[[], float]
"""A monotonic clock in seconds; injected."""
