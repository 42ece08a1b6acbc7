"""Engine parts of one process of an asynchronous training.

They stop the process when the shared run is over, and send episodes, evaluations and the names of
snapshots to the parent.
"""

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from workers.core.errors import WorkerError
from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView, EngineView
from workers.core.types import (
    EpisodeEnd,
    EvaluationResult,
    LearnReport,
    SnapshotReason,
    StateTree,
    StopReason,
)
from workers.engine.clock import StillClock
from workers.entrypoints.async_training.messages import (
    EpisodesMessage,
    EvaluationMessage,
    ProcessTask,
    SnapshotMessage,
)
from workers.entrypoints.async_training.shared_block import StopCause
from workers.entrypoints.async_training.shared_parts import (
    EndOfRun,
    SharedBestScore,
    SharedBudget,
    SharedClock,
)
from workers.entrypoints.functional_parts.evaluator import (
    ExternalAgentEvaluator,
    call_evaluation_hooks,
    eval_stats_of,
)
from workers.entrypoints.functional_parts.named_snapshots import (
    BEST,
    CHECKPOINT,
    EXCEPT,
    FINISH,
    SUCCESSFUL,
)
from workers.hooks.evaluation_hooks import is_reached
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.snapshot.snapshot_directory import Moment, write_snapshot


class RunAbortedError(WorkerError):
    """The parent or another process aborted the run.

    Raised in the process that writes the last snapshot. The process saves its state and reports no
    error.
    """


class FollowRunHook:
    """Stops a process that starts after the run is over, and ends the run at the success score."""

    def __init__(self, end: EndOfRun, budget: SharedBudget, successful_score: float | None) -> None:
        self._end = end
        self._budget = budget
        self._score = successful_score

    def on_start(self, view: EngineView) -> None:
        """Stops before the first step if the run is over or the budget is used up."""
        if self._end.writes_last_snapshot:
            view.request_stop(StopReason.REQUESTED)
        elif self._end.is_over or (self._end.index > 0 and self._budget.is_reached):
            view.request_stop(StopReason.DRAIN)

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Ends the run for all processes if the mean return reaches the successful score."""
        if is_reached(self._score, result.mean) and self._end.claim(StopCause.SUCCESS):
            view.request_stop(StopReason.SUCCESS_SCORE)


class ProcessControl:
    """The engine's control: checks after each step whether the run is over.

    Args:
        end: Shared state of the run's end, seen by this process.
        budget: Budget of all processes, seen by this process.
        clock: Clock of this process.
        stop_event: The caller's event, or `None`; once it is set, process 0 ends the run.
    """

    def __init__(
        self, end: EndOfRun, budget: SharedBudget, clock: SharedClock, stop_event: Any
    ) -> None:
        self._end = end
        self._budget = budget
        self._clock = clock
        self._stop_event = stop_event

    @property
    def order(self) -> StopReason | None:
        """Reason to stop, or `None`.

        In the process that ends the run it is the run's reason, in the others `DRAIN`.

        Raises:
            RunAbortedError: If the run was aborted and this process writes the last snapshot.
        """
        end = self._end
        if self._stop_event is None and not end.is_imminent:
            return None
        if (
            self._stop_event is not None
            and not end.is_over
            and self._stop_event.is_set()
            and end.index == 0
        ):
            end.claim(StopCause.REQUESTED)
        if end.is_over:
            return self._reason()
        if end.index == 0:
            return StopReason.BUDGET if self._budget.is_exhausted(self._clock) else None
        stopped = self._budget.is_reached or (
            self._stop_event is not None and self._stop_event.is_set()
        )
        return StopReason.DRAIN if stopped else None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing: no process waits for an answer."""

    def _reason(self) -> StopReason:
        if not self._end.writes_last_snapshot:
            return StopReason.DRAIN
        if self._end.is_aborted:
            raise RunAbortedError("the run was ended from outside this process")
        return StopReason.REQUESTED


class ProcessSnapshots:
    """Writes snapshots of the best agent and, if this process ends the run, the last snapshot.

    The counts in the last snapshot are those of all processes together.
    """

    def __init__(
        self,
        order: ProcessTask,
        clock: SharedClock,
        best: SharedBestScore,
        end: EndOfRun,
        link: Connection,
    ) -> None:
        self._order = order
        self._writing = order.writing.reopen()
        self._clock = clock
        self._best = best
        self._end = end
        self._link = link

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a snapshot and returns its name; see `Snapshotter.save`.

        Returns `""` and writes nothing if another process writes the last snapshot.
        """
        if reason is SnapshotReason.BEST:
            return self._save_best(state, clock, score)
        if reason is SnapshotReason.EXCEPTION:
            self._end.abort(self._end.index)
        if reason is not SnapshotReason.PERIODIC and not self._end.writes_last_snapshot:
            return ""
        totals = self._clock.totals()
        name = self._name(reason, totals["env_steps"])
        return self._write(
            name,
            {**state, "clock": totals},
            Moment(clock=StillClock(**totals), reason=reason, score=score),
        )

    def _save_best(self, state: StateTree, clock: ClockView, score: float | None) -> str:
        """Writes the snapshot `best`, unless another process has reported a better score since."""
        with self._writing.hold_lock():
            best = self._best.score
            if score is None or best is None or score >= best:
                return self._write(
                    BEST, state, Moment(clock=clock, reason=SnapshotReason.BEST, score=score)
                )
        return BEST

    def _name(self, reason: SnapshotReason, env_steps: int) -> str:
        if reason is SnapshotReason.PERIODIC:
            return f"{env_steps}_{CHECKPOINT}"
        if self._end.ending is StopCause.SUCCESS:
            return SUCCESSFUL
        if self._end.ending is StopCause.BUDGET:
            # PFRL's scripts load the snapshot under this name. The env_steps in its manifest can be
            # more, because the other processes finish the step that they have begun.
            return f"{self._order.settings.steps}_{FINISH}"
        return f"{env_steps}_{EXCEPT if self._end.is_aborted else FINISH}"

    def _write(self, name: str, state: StateTree, moment: Moment) -> str:
        order = self._order
        write_snapshot(order.settings.outdir / name, order.owner, state, moment)
        self._link.send(SnapshotMessage(name, moment.reason))
        return name


class LinkRecorder(NoRecorder):
    """Sends episodes and evaluations to the parent, which writes the record files.

    Evaluation hooks are called in this process, because their environment is here. With
    `sends_statistics`, messages about episodes include the agent's statistics.
    """

    def __init__(
        self,
        link: Connection,
        agent: ExternalAgent,
        evaluator: ExternalAgentEvaluator | None,
        hooks: Sequence[Any],
        *,
        sends_statistics: bool,
    ) -> None:
        self._link = link
        self._agent = agent
        self._evaluator = evaluator
        self._hooks = hooks
        self._speaks = sends_statistics

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Sends the episodes that ended in this iteration, if any."""
        del reports
        if episodes:
            statistics = tuple(self._agent.wrapped.get_statistics()) if self._speaks else ()
            self._link.send(EpisodesMessage(_copy_counters(clock), tuple(episodes), statistics))

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Sends an evaluation, then calls the evaluation hooks."""
        del is_final
        evaluator = self._evaluator
        assert evaluator is not None
        agent_stats, env_stats = list(self._agent.wrapped.get_statistics()), evaluator.statistics()
        self._link.send(
            EvaluationMessage(_copy_counters(clock), result, tuple(agent_stats), tuple(env_stats))
        )
        call_evaluation_hooks(
            self._hooks,
            evaluator,
            step=clock.env_steps,
            eval_stats=eval_stats_of(result),
            agent_stats=agent_stats,
            env_stats=env_stats,
        )


def _copy_counters(clock: ClockView) -> StillClock:
    return StillClock(
        clock.env_steps,
        clock.updates,
        clock.iterations,
        clock.epochs,
        clock.episodes,
        clock.wall_seconds,
    )
