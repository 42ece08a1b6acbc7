"""One process of an asynchronous training: an engine on counts that all processes share.

Owns the process's environments, agent and engine. Everything that is recorded goes to the parent,
which alone writes records.
"""

import cProfile
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from workers.core.errors import WorkerError
from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView, EngineView
from workers.core.rng import derive_seed, global_state, seed_global
from workers.core.types import (
    EpisodeEnd,
    EvaluationResult,
    LearnReport,
    SnapshotReason,
    StateTree,
    StopReason,
)
from workers.engine.clock import StillClock
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.entrypoints.async_training import process_main
from workers.entrypoints.async_training.messages import EpisodesEnded, Evaluated, Saved
from workers.entrypoints.async_training.process_group import wait_for_go
from workers.entrypoints.async_training.shared_block import SharedBlock, StopCause
from workers.entrypoints.async_training.shared_parts import (
    EndOfRun,
    SharedBest,
    SharedBudget,
    SharedClock,
    SharedEvery,
)
from workers.entrypoints.async_training.spawn_pickling import Parcel
from workers.entrypoints.functional_parts.evaluator import (
    EvaluationGround,
    EvaluationSettings,
    ForeignEvaluator,
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
from workers.hooks.evaluation_hooks import reaches
from workers.hooks.step_hooks import StepHooks
from workers.rl.agents.pfrl_adapter import ForeignAgent
from workers.rl.agents.shared_tensors import SharedTensors, adopt
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.caller_envs import as_vector
from workers.rl.envs.vector import EpisodeVector
from workers.rl.evaluate.vector_evaluator import training_seeds
from workers.snapshot.snapshot_directory import Moment, SnapshotOwner, read_snapshot, write_snapshot

_WAIT_SECONDS = 0.002


class RunAbortedError(WorkerError):
    """Something outside this process ended the run.

    What there is, is saved, and nobody else hears of it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSettings:
    """What is the same for all processes."""

    outdir: Path
    steps: int
    evaluation: EvaluationSettings | None
    max_episode_len: int | None
    successful_score: float | None
    save_best: bool
    profile: bool
    save_memory: bool


class UserParts(NamedTuple):
    """What the caller gave."""

    make_env: Callable[..., object]
    make_agent: Callable[[int], object] | None
    agent: Any
    """`None` where each process makes its own."""
    tensors: SharedTensors
    step_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[object, ...]
    stop_event: Any
    """`None` where it is none, or one that the parent watches for everybody."""


@dataclass(frozen=True, slots=True)
class ProcessTask:
    """What one process is told."""

    settings: AsyncSettings
    owner: SnapshotOwner
    resume: Path | None
    """The snapshot from which the run goes on."""
    seed: int
    block: SharedBlock
    writing: SharedBlock
    """Its lock is held by the process that writes the best agent."""
    user: Parcel
    """Of `UserParts`."""


def enter(parent: int, index: int, link: Connection, order: ProcessTask) -> None:
    """Is run by each process; see `ProcessGroup`."""
    process_main.run(parent, index, link, lambda index, link: _train(index, link, order))


def _train(index: int, link: Connection, order: ProcessTask) -> None:
    with ExitStack() as stack:
        member = _Member(index, link, order, stack)
        if not wait_for_go(link):
            return
        with _profiled(order.settings, index):
            member.drive()


class _Member:
    """One process's part in the run: environments, an agent and an engine, on what all share."""

    def __init__(self, index: int, link: Connection, order: ProcessTask, stack: ExitStack) -> None:
        settings, user, block = order.settings, order.user.unpack(), order.block.opened()
        _prepare(order.seed)
        self._index = index
        self._order = order
        self._end = EndOfRun(block, index)
        self._clock = SharedClock(time.monotonic, block, settings.steps)
        self._best = SharedBest(block)
        env = _opened(stack, user.make_env(index, test=False))
        ground = (
            None if settings.evaluation is None else _opened(stack, user.make_env(index, test=True))
        )
        own = _known_as(user.agent, index) if user.make_agent is None else user.make_agent(index)
        self._agent = ForeignAgent(own, num_envs=1, batch=False, save_memory=settings.save_memory)
        self._engine = self._built(
            link, user, SharedBudget(settings.steps, self._clock, block, self._end), env, ground
        )
        if order.resume is not None:
            self._resume(order.resume)
        adopt(own, user.tensors)

    def drive(self) -> None:
        """Trains until the run is over.

        The process that ends it finishes once all others have stopped.
        """
        self._clock.begin()
        try:
            for _ in self._engine.ticks():
                if self._end.mine:
                    self._wait_for_others()
        except RunAbortedError:
            return
        finally:
            self._end.stopped_stepping()

    def _built(
        self, link: Connection, user: UserParts, budget: SharedBudget, env: object, ground: object
    ) -> Engine:
        settings, seed = self._order.settings, self._collect_seed()
        evaluator = (
            None
            if settings.evaluation is None
            else self._evaluator(ground, settings.evaluation, seed)
        )
        parts = Parts(
            agent=self._agent,
            collector=VectorCollector(_single(env, settings.max_episode_len), self._agent, seed),
            recorder=_LinkRecorder(
                link, self._agent, evaluator, user.evaluation_hooks, speaks=self._index == 0
            ),
            snapshotter=_Snapshots(self._order, self._clock, self._best, self._end, link),
            control=ProcessControl(self._end, budget, self._clock, user.stop_event),
            evaluator=evaluator,
            hooks=(
                _Follow(self._end, budget, settings.successful_score),
                StepHooks(env, self._agent.wrapped, user.step_hooks, 1),
            ),
            best=self._best,
            clock=self._clock,
        )
        interval = (
            None
            if settings.evaluation is None
            else SharedEvery(settings.evaluation.interval, self._clock, settings.steps)
        )
        cadence = Cadence(
            budget=budget, evaluation=interval, save_best=settings.save_best, best_apart=True
        )
        return Engine(parts, cadence, time.monotonic)

    def _evaluator(self, ground: Any, settings: EvaluationSettings, seed: int) -> ForeignEvaluator:
        place = EvaluationGround(ground, _single(ground, settings.max_episode_len))
        return ForeignEvaluator(
            self._agent, place, settings, training_seeds(seed), self._best, self._look_up
        )

    def _collect_seed(self) -> int:
        """Returns what episodes derive from.

        After a resume, processes but the first begin others than those that were.
        """
        at = self._clock.env_steps
        resumed = self._order.resume is not None and self._index > 0
        return derive_seed(self._order.seed, "resumed", at) if resumed else self._order.seed

    def _resume(self, snapshot: Path) -> None:
        """Restores a snapshot, which was written by one process.

        The first process restores all of it, the others what all processes share.
        """
        state = read_snapshot(snapshot).state
        if self._index > 0:
            fresh = self._engine.state_dict()
            state = {
                **state,
                **{part: fresh[part] for part in ("collector", "recorder", "hooks")},
                "rng": global_state(),
            }
        self._engine.restore(state)

    def _look_up(self) -> None:
        if self._end.aborted:
            raise RunAbortedError("the run was ended from outside this process")

    def _wait_for_others(self) -> None:
        self._end.stopped_stepping()
        while not self._end.alone():
            try:
                self._look_up()
            except RunAbortedError as error:
                self._engine.save_after(error)
                raise
            time.sleep(_WAIT_SECONDS)
        if self._end.ending is not StopCause.SUCCESS:
            self._clock.catch_up()


class _Follow:
    """The hook that keeps a process in step with the run."""

    def __init__(self, end: EndOfRun, budget: SharedBudget, successful_score: float | None) -> None:
        self._end = end
        self._budget = budget
        self._score = successful_score

    def on_start(self, view: EngineView) -> None:
        """Makes no step where the others have made them all."""
        if self._end.mine:
            view.request_stop(StopReason.REQUESTED)
        elif self._end.over or (self._end.index > 0 and self._budget.reached):
            view.request_stop(StopReason.DRAIN)

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Ends the run for all where the score is reached."""
        if reaches(self._score, result.mean) and self._end.claim(StopCause.SUCCESS):
            view.request_stop(StopReason.SUCCESS_SCORE)


class ProcessControl:
    """What the engine looks at after each step.

    Args:
        end: This process's.
        budget: This process's.
        clock: This process's.
        stop_event: The caller's, if it gave one.
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
        """Why to stop, if at all.

        The process that ends the run is told the run's reason, the others that it is over.
        """
        end = self._end
        if self._stop_event is None and not end.in_sight:
            return None
        if (
            self._stop_event is not None
            and not end.over
            and self._stop_event.is_set()
            and end.index == 0
        ):
            end.claim(StopCause.REQUESTED)
        if end.over:
            return self._reason()
        if end.index == 0:
            return StopReason.BUDGET if self._budget.exhausted(self._clock) else None
        stopped = self._budget.reached or (
            self._stop_event is not None and self._stop_event.is_set()
        )
        return StopReason.DRAIN if stopped else None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing: nobody waits for it."""

    def _reason(self) -> StopReason:
        if not self._end.mine:
            return StopReason.DRAIN
        if self._end.aborted:
            raise RunAbortedError("the run was ended from outside this process")
        return StopReason.REQUESTED


class _Snapshots:
    """Writes the best agent, and the last snapshot where this process ends the run.

    All counts in it are those of the whole run.
    """

    def __init__(
        self,
        order: ProcessTask,
        clock: SharedClock,
        best: SharedBest,
        end: EndOfRun,
        link: Connection,
    ) -> None:
        self._order = order
        self._writing = order.writing.opened()
        self._clock = clock
        self._best = best
        self._end = end
        self._link = link

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a snapshot, if it is this process's to write; see the protocol."""
        if reason is SnapshotReason.BEST:
            return self._save_best(state, clock, score)
        if reason is SnapshotReason.EXCEPTION:
            self._end.abort(self._end.index)
        if reason is not SnapshotReason.PERIODIC and not self._end.mine:
            return ""
        totals = self._clock.totals()
        name = self._name(reason, totals["env_steps"])
        return self._write(
            name,
            {**state, "clock": totals},
            Moment(clock=StillClock(**totals), reason=reason, score=score),
        )

    def _save_best(self, state: StateTree, clock: ClockView, score: float | None) -> str:
        """Writes it unless another process has had a better one meanwhile."""
        with self._writing.locked():
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
            # The name that PFRL's scripts load; the manifest counts what the other processes
            # stepped meanwhile, too.
            return f"{self._order.settings.steps}_{FINISH}"
        return f"{env_steps}_{EXCEPT if self._end.aborted else FINISH}"

    def _write(self, name: str, state: StateTree, moment: Moment) -> str:
        order = self._order
        write_snapshot(order.settings.outdir / name, order.owner, state, moment)
        self._link.send(Saved(name, moment.reason))
        return name


class _LinkRecorder(NoRecorder):
    """Tells the parent, which writes the records.

    Evaluation hooks are called here, where their environment is.
    """

    def __init__(
        self,
        link: Connection,
        agent: ForeignAgent,
        evaluator: ForeignEvaluator | None,
        hooks: Sequence[Any],
        *,
        speaks: bool,
    ) -> None:
        self._link = link
        self._agent = agent
        self._evaluator = evaluator
        self._hooks = hooks
        self._speaks = speaks

    def tick(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Tells of the episodes that ended."""
        del reports
        if episodes:
            statistics = tuple(self._agent.wrapped.get_statistics()) if self._speaks else ()
            self._link.send(EpisodesEnded(_still(clock), tuple(episodes), statistics))

    def evaluation(self, clock: ClockView, result: EvaluationResult, *, final: bool) -> None:
        """Tells of an evaluation, then calls the hooks."""
        del final
        evaluator = self._evaluator
        assert evaluator is not None
        agent_stats, env_stats = list(self._agent.wrapped.get_statistics()), evaluator.statistics()
        self._link.send(Evaluated(_still(clock), result, tuple(agent_stats), tuple(env_stats)))
        call_evaluation_hooks(
            self._hooks,
            evaluator,
            step=clock.env_steps,
            eval_stats=eval_stats_of(result),
            agent_stats=agent_stats,
            env_stats=env_stats,
        )


def _still(clock: ClockView) -> StillClock:
    return StillClock(
        clock.env_steps,
        clock.updates,
        clock.iterations,
        clock.epochs,
        clock.episodes,
        clock.wall_seconds,
    )


def _prepare(seed: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    seed_global(seed)


def _single(env: Any, max_episode_len: int | None) -> EpisodeVector:
    vector = as_vector(env, "make_env", max_episode_len)
    if vector.num_envs != 1:
        raise ValueError(
            f"make_env: it made {vector.num_envs} environments, but a process steps one: "
            "raise processes instead"
        )
    return vector


def _known_as(agent: object, index: int) -> Any:
    """Tells an agent that every process got which process this is, if it wants to know."""
    if hasattr(agent, "process_idx"):
        agent.process_idx = index
    return agent


def _opened(stack: ExitStack, env: Any) -> Any:
    stack.callback(env.close)
    return env


@contextmanager
def _profiled(settings: AsyncSettings, index: int) -> Iterator[None]:
    """Leaves `profile_<index>.prof` in the output directory, if that is wanted."""
    if not settings.profile:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        profiler.dump_stats(settings.outdir / f"profile_{index}.prof")
