"""The engine: the training loop with its order of collect, learn and boundary.

Glossary. An *env_step* is one transition in one environment. A *tick* or *iteration* is one
collect, perhaps a learn, and one boundary. An *epoch* is a group of iterations: in `run` it closes
when a multiple of its length is crossed, in `epochs` when the caller's body is done.

The verbs are `collect`, `learn` and `end_iteration`. `run` (or `ticks`, which yields after each
iteration) calls them for an agent; `epochs` is for callers that call them: the body of their loop
collects and learns, and each pass of the loop closes an epoch with a boundary.

The order of one iteration, in both drivers:

     1. collect              experience, cut short where a budget, an exact evaluation or a learn
        comes before the plan's end
     2. observe              the agent stores it
     3. learn                if a multiple of the learn schedule was crossed
     4. hooks                on_tick, then on_episode for each episode that ended
     5. record               episodes and reports; the epoch, if it closed
     6. evaluate             if due; on_evaluation, then the evaluation is recorded. A background
        evaluation is started here, once the previous one is done; it is reported and recorded at
        the first boundary after its end
     7. best snapshot        if the mean return strictly exceeds the best before; on_snapshot
     8. stop conditions      requests of hooks, then the budget
     9. periodic snapshot    if due and the run continues; on_snapshot
    10. control flag         pause, cancel, drain from outside
    11. yield

At the end of a run: the last epoch closes, one final evaluation unless the current state was
evaluated (with a periodic snapshot before it), on_finish, the final snapshot. At a pause, cancel or
drain: on_finish and a snapshot, unless this iteration has already written one. On an exception: a
snapshot with that reason.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from workers.core.errors import InputExhaustedError
from workers.core.protocols import TimeSource
from workers.core.types import (
    CollectPlan,
    EpisodeEnd,
    Experience,
    LearnReport,
    RestoreReport,
    SnapshotReason,
    StateTree,
    StopReason,
    Unit,
)
from workers.engine.budget import UNLIMITED
from workers.engine.clock import Clock
from workers.engine.collect_plan import CollectPlanner
from workers.engine.evaluation_schedule import EvaluatedState, EvaluationSchedule
from workers.engine.hook_calls import HookCalls
from workers.engine.learn_trigger import LearnTrigger
from workers.engine.part_states import restore_parts, states_of
from workers.engine.parts import Cadence, Parts, RunResult
from workers.engine.snapshot_schedule import SnapshotSchedule
from workers.engine.triggers import NeverTrigger, make_trigger


class Engine:
    """Trains with the given parts. See the module for the order of one iteration.

    Args:
        parts: Newly built parts; for a resume, call `restore` next.
        cadence: When the engine evaluates, saves and ends.
        time: Returns monotonic seconds.
    """

    def __init__(self, parts: Parts, cadence: Cadence, time: TimeSource) -> None:
        self.clock = parts.clock or Clock(time)
        self.agent = parts.agent
        self._parts = parts
        self._cadence = cadence
        self._hooks = HookCalls(parts.hooks)
        self._tick_hooks, self._episode_hooks = self._hooks.on_tick, self._hooks.on_episode
        self._learning = LearnTrigger(parts.agent.learn_schedule)
        self._epoch = make_trigger(cadence.epoch)
        self._evaluations = EvaluationSchedule(
            parts.evaluator,
            make_trigger(cadence.evaluation),
            evaluates_during_episode=cadence.evaluates_during_episode,
        )
        self._snapshots = SnapshotSchedule(
            parts.snapshotter,
            make_trigger(cadence.snapshot),
            saves_best_separately=cadence.saves_best_separately,
        )
        self._plans = CollectPlanner(parts.agent.collect_plan, parts.collector.num_envs)
        self._ended: list[tuple[int, EpisodeEnd]] = []
        self._reports: list[LearnReport] = []
        self._best = parts.best
        self._epoch_closed_at = 0
        self._stop: StopReason | None = None
        self._stop_message: str | None = None
        self._is_finishing = False
        self._in_epoch = False
        self._quiet_until = 0
        self._asks_budget = cadence.budget.quiet_until == 0

    # Drivers

    def run(self) -> RunResult:
        """Trains until a stop condition holds or an order arrives.

        Raises:
            Exception: Whatever a part raised, after a snapshot with the reason `exception`.
        """
        for _ in self.ticks():
            pass
        return self.result

    def ticks(self) -> Generator[Clock, None, None]:
        """Trains like `run`, and yields the clock after each boundary.

        If the caller stops iterating, no final evaluation or snapshot is made.
        """
        self._begin()
        with self._save_on_error():
            while self._stop is None:
                try:
                    self._gather()
                except InputExhaustedError:
                    self._stop = StopReason.INPUT_EXHAUSTED
                    break
                self.end_iteration()
                yield self.clock
            self._finish()

    def epochs(self, until: int) -> Iterator[int]:
        """Yields the index of each epoch up to `until`.

        The caller's body collects and learns, then the epoch closes with a boundary.

        A generator cannot know whether its caller left the loop by `break` or by an exception. A
        caller that leaves the loop must call `leave_epochs` or `save_after`.
        """
        self._begin()
        with self._save_on_error():
            while self._stop is None and self.clock.epochs < until:
                self._in_epoch = True
                yield self.clock.epochs
                self._in_epoch = False
                self.end_iteration(closes_epoch=True)
            self._stop = self._stop or StopReason.BUDGET
            self._finish()

    def leave_epochs(self) -> None:
        """Closes the epoch in which the caller left the loop of `epochs`, and ends the run.

        Does nothing if no epoch is open.
        """
        if not self._in_epoch:
            return
        self._in_epoch = False
        with self._save_on_error():
            self.end_iteration(closes_epoch=True)
            self._stop = self._stop or StopReason.REQUESTED
            self._finish()

    def save_after(self, error: BaseException) -> None:
        """Saves the state after an exception.

        If saving fails, adds a note to `error` and raises nothing.
        """
        self._in_epoch = False
        self._evaluations.discard_background()
        try:
            self._save(SnapshotReason.EXCEPTION)
        except Exception as second:  # noqa: BLE001 - the first error is the one to report
            error.add_note(
                f"The state could not be saved afterwards: {type(second).__name__}: {second}"
            )

    # Verbs

    def collect(self, plan: CollectPlan | None = None) -> Experience:
        """Gathers experience and counts it.

        Args:
            plan: What to collect; `None` takes the agent's plan, shortened where an exact event
                comes before its end.

        Returns:
            Experience whose arrays are valid until the next collect. The caller lets the agent
                observe it.
        """
        experience = self._parts.collector.collect(plan or self._next_plan())
        self.clock.count(experience.env_steps, len(experience.episodes))
        for report in experience.learn_reports:
            self.clock.updates += report.updates
            self._reports.append(report)
        if experience.episodes:
            self._ended += experience.ends(self.clock.env_steps - experience.env_steps)
        return experience

    def learn(self, updates: int | None = None) -> LearnReport:
        """Makes the agent do at most `updates` updates, and counts those that it did.

        The number is limited by the remaining budget.
        """
        room = self._cadence.budget.room(self.clock, Unit.UPDATES)
        report = self._parts.agent.learn(
            min(self._learning.per_multiple if updates is None else updates, room)
        )
        if report.updates:
            self.clock.updates += report.updates
            self._reports.append(report)
        return report

    def advance(self, env_steps: int) -> None:
        """Does steps 1 to 3 of the order until `env_steps` more are collected.

        A caller of `epochs` can use it as the body of an epoch.
        """
        end = self.clock.env_steps + env_steps
        while self.clock.env_steps < end:
            self._gather()

    def end_iteration(self, *, closes_epoch: bool = False) -> bool:
        """Ends an iteration: steps 4 to 10 of the order.

        Args:
            closes_epoch: Whether to close an epoch here even if the cadence does not require it.

        Returns:
            Whether the run continues.
        """
        clock, parts = self.clock, self._parts
        clock.iterations += 1
        for on_tick in self._tick_hooks:
            on_tick(self, self._reports)
        if self._episode_hooks:
            for _, end in self._ended:
                for on_episode in self._episode_hooks:
                    on_episode(self, end)
        parts.recorder.record_iteration(clock, self._ended, self._reports)
        if (
            clock.env_steps >= self._quiet_until
            or closes_epoch
            or (self._asks_budget and self._cadence.budget.is_exhausted(clock))
        ):
            self._run_due_events(closes_epoch=closes_epoch)
        if self._stop is None and parts.control.order is not None:
            self._stop = parts.control.order
            parts.control.acknowledge(self._stop)
        self._ended.clear()
        self._reports.clear()
        return self._stop is None

    # What hooks see (EngineView)

    def request_stop(self, reason: StopReason, message: str | None = None) -> None:
        """Ends the run at this boundary. The first reason is kept; it overrides `BUDGET`."""
        if self._stop is None or self._stop is StopReason.BUDGET:
            self._stop, self._stop_message = reason, message

    def record_note(self, code: str, message: str) -> None:
        """Records a notice that the run's page shows."""
        self._parts.recorder.record_note(code, message)

    def request_evaluation(self) -> None:
        """Makes an evaluation due."""
        self._evaluations.request()
        self._quiet_until = 0

    def request_snapshot(self) -> None:
        """Makes a periodic snapshot due."""
        self._snapshots.request()
        self._quiet_until = 0

    # State

    @property
    def is_stopping(self) -> bool:
        """Whether the run ends without further collects."""
        return self._stop is not None

    @property
    def result(self) -> RunResult:
        """How the last `run` or `epochs` ended; `REQUESTED` if the caller left it early."""
        return RunResult(
            self._stop or StopReason.REQUESTED,
            self._snapshots.last_id,
            self._evaluations.score,
            self._stop_message,
        )

    def state_dict(self) -> StateTree:
        """Returns the state of the run; it may refer to arrays of the parts, see `Stateful`."""
        memory = (
            {"memory": self._parts.agent.memory.state_dict()} if self._cadence.saves_memory else {}
        )
        return {**self._state_without_memory(), **memory}

    def _state_without_memory(self) -> StateTree:
        return states_of(self._parts, self.clock, self._hooks, self._own_state())

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores newly built parts of the same definition from `state`.

        Returns:
            Whether the resumed run can be exact, and what prevents it.
        """
        self.clock.load_state_dict(state["clock"])
        self._load_own_state(state["loop"])
        if "memory" not in state:
            self._learning.warm_up_again(self.clock)
        return restore_parts(self._parts, self._hooks, state)

    # Private, in the order of the iteration

    @contextmanager
    def _save_on_error(self) -> Iterator[None]:
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            self.save_after(error)
            raise

    def _begin(self) -> None:
        self._stop = self._stop_message = None
        self._quiet_until = 0
        for on_start in self._hooks.on_start:
            on_start(self)
        if self._stop is None and self._cadence.budget.is_exhausted(self.clock):
            self._stop = StopReason.BUDGET

    def _gather(self) -> None:
        experience = self.collect()
        self._parts.agent.observe(experience)
        clock, learning = self.clock, self._learning
        if (clock.env_steps >= learning.next or experience.episodes) and (
            updates := learning.take_due(clock, experience.episodes)
        ):
            self.learn(updates)

    def _next_plan(self) -> CollectPlan:
        if self._plans.longest <= 1:
            return self._plans.whole
        at = self.clock.env_steps
        room = min(
            self._cadence.budget.room(self.clock, Unit.ENV_STEPS),
            self._learning.next - at,
            self._evaluations.next_exact - at,
        )
        return self._plans.shorten_plan(room)

    def _run_due_events(self, *, closes_epoch: bool) -> None:
        """Runs the due events of steps 5 (the epoch) to 9.

        Then sets `_quiet_until`, the env_step before which none of them can be due: most
        iterations have nothing due.
        """
        clock, budget = self.clock, self._cadence.budget
        if self._epoch.take_due(clock) or closes_epoch:
            self._close_epoch()
        if self._evaluations.is_due_or_running(clock):
            self._run_due_evaluations()
        if self._stop is None and budget.is_exhausted(clock):
            self._stop = StopReason.BUDGET
        if self._snapshots.take_due(clock):
            self._save_periodically()
        due = (
            self._epoch.quiet_until,
            self._evaluations.quiet_until,
            budget.quiet_until or UNLIMITED,
            self._snapshots.quiet_until,
        )
        self._quiet_until = min(due)

    def _close_epoch(self) -> None:
        self.clock.epochs += 1
        self._epoch_closed_at = self.clock.env_steps
        self._parts.recorder.record_epoch(self.clock)

    def _run_due_evaluations(self) -> None:
        self._report_evaluation(self._evaluations.take_result(wait=False))
        if self._evaluations.is_due_now(has_episode_ended=bool(self._ended)):
            self._evaluate()

    def _evaluate(self) -> None:
        if self._is_finishing or not self._evaluations.is_in_background:
            self._report_evaluation(self._evaluations.evaluate(self.clock))
        else:
            self._report_evaluation(self._evaluations.take_result(wait=True))
            self._evaluations.begin(self._state_without_memory())

    def _report_evaluation(self, evaluated: EvaluatedState | None) -> None:
        """Reports an evaluation to hooks and recorder, and saves the state if it is the best.

        A background evaluation is of an earlier state, since training continued meanwhile.
        """
        if evaluated is None:
            return
        for on_evaluation in self._hooks.on_evaluation:
            on_evaluation(self, evaluated.result)
        over = (
            self._stop is not None and self._stop.completes_run
        ) or self._cadence.budget.is_exhausted(self.clock)
        last = over and self._evaluations.has_evaluated(self.clock)
        self._parts.recorder.record_evaluation(evaluated.clock, evaluated.result, is_final=last)
        if not self._best.store_if_better(evaluated.result.mean) or not self._cadence.saves_best:
            return
        if evaluated.state is not None:
            self._snapshots.save_earlier(evaluated.state, evaluated.clock, evaluated.result.mean)
        elif not self._is_finishing or self._cadence.saves_best_separately:
            self._save(SnapshotReason.BEST)

    def _save_periodically(self) -> None:
        if self._stop is None and self._snapshots.is_needed(self.clock):
            self._report_evaluation(self._evaluations.take_result(wait=True))
            self._save(SnapshotReason.PERIODIC)

    def _save(self, reason: SnapshotReason) -> None:
        self._parts.recorder.flush()
        score = self._evaluations.score_of(self.clock)
        snapshot_id = self._snapshots.save(self.state_dict(), self.clock, reason, score)
        for on_snapshot in self._hooks.on_snapshot:
            on_snapshot(self, snapshot_id)

    def _finish(self) -> None:
        self._is_finishing = True
        self._report_evaluation(self._evaluations.take_result(wait=True))
        if self._stop is not None and self._stop.completes_run:
            if self.clock.env_steps > self._epoch_closed_at and not isinstance(
                self._epoch, NeverTrigger
            ):
                self._close_epoch()
            if self._cadence.has_final_evaluation and not self._evaluations.has_evaluated(
                self.clock
            ):
                if self._cadence.saves_before_final_evaluation and self._snapshots.is_needed(
                    self.clock
                ):
                    self._save(SnapshotReason.PERIODIC)
                self._evaluate()
        reason = self.result.reason
        for on_finish in self._hooks.on_finish:
            on_finish(self, reason)
        if reason.completes_run:
            self._save(SnapshotReason.FINISH)
        elif reason is StopReason.DIVERGED:
            self._save(SnapshotReason.EXCEPTION)
        elif self._snapshots.is_needed(self.clock):
            self._save(SnapshotReason.STOP)
        self._parts.recorder.flush()
        self._is_finishing = False

    def _own_state(self) -> StateTree:
        return {
            "learning": self._learning.state_dict(),
            "epoch": self._epoch.state_dict(),
            "evaluations": self._evaluations.state_dict(),
            "snapshot": self._snapshots.state_dict(),
            "best": self._best.score,
            "epoch_closed_at": self._epoch_closed_at,
            "stop": self._stop.value if self._stop else None,
        }

    def _load_own_state(self, state: StateTree) -> None:
        self._learning.load_state_dict(state["learning"])
        self._epoch.load_state_dict(state["epoch"])
        self._evaluations.load_state_dict(state["evaluations"])
        self._snapshots.load_state_dict(state["snapshot"])
        self._best.score = state["best"]
        self._epoch_closed_at = state["epoch_closed_at"]
