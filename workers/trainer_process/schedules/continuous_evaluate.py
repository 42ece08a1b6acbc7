"""Evaluates the snapshots of a run one after another, as its supervisor provides them.

Trains nothing. The supervisor decides how long to wait (`workers.supervisor.snapshot_feed`); this
module writes a request and polls for its answer.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from palestra.contract.definition import Definition
from palestra.contract.identity import hash_definition
from palestra.contract.names import EvaluationSource, Schedule
from palestra.contract.telemetry import Evaluation
from palestra.contract.work_order import Follow, RunOrder
from workers.assembly.part_set import ClosableEvaluator
from workers.assembly.training import build_evaluator, build_train_data_evaluator, load_agent
from workers.core.protocols import ClockView, TrainableAgent
from workers.core.rng import derive_seed
from workers.core.shared_counter import SharedCount
from workers.core.types import JsonObject, StopReason
from workers.engine.clock import StillClock
from workers.hooks.evaluation_hooks import is_reached
from workers.ipc import snapshot_requests
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.snapshot_requests import NoSnapshotReason, SnapshotAnswer, SnapshotRequest
from workers.recording.progress_file import ProgressFile
from workers.recording.recorder import Sink, evaluation_records
from workers.rl.evaluate.vector_evaluator import SeedRule, fixed_seed_rule
from workers.snapshot.attempt_store import load_snapshot
from workers.snapshot.snapshot_directory import LoadedSnapshot
from workers.trainer_process.schedules.native import list_job_sources

_LOOK_SECONDS: Final = 0.1
_SCORES: Final = frozenset({EvaluationSource.EVALUATION, EvaluationSource.TRAIN_DATA})
_REMEMBERED: Final = 200
"""Number of evaluated snapshots in a request; the server has records of the older ones."""


@dataclass(frozen=True, slots=True)
class FollowResult:
    """The reason for the end of a continuous evaluation, and the number of its evaluations."""

    reason: StopReason
    evaluations: int
    """Number of the job's evaluations, including those of earlier attempts."""


@dataclass(slots=True)
class Follower:
    """Evaluates the snapshots of a run, one after another, until its training is over."""

    directory: AttemptDirectory
    definition: Definition
    run: RunOrder
    schedule: Schedule
    sink: Sink
    device: str
    wall: Callable[[], float] = time.time
    clock: ClockView | None = None
    """Counters of the snapshot that was evaluated last."""
    _made: int = 0
    _looks: int = 0
    """Polls for the present snapshot."""
    _is_waiting: bool = False
    _progress: SharedCount = field(default_factory=SharedCount)
    """Vector steps, or batches, of all evaluations."""
    _evaluated: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _progress_file: ProgressFile = field(init=False)

    def __post_init__(self) -> None:
        self._progress_file = ProgressFile(self.directory.progress, self._describe_progress)

    def follow(self) -> FollowResult:
        """Evaluates until the run's training is over or a success score was reached.

        It also ends when no attempt trains the run any more.
        """
        self._progress_file.start()
        try:
            return self._follow()
        finally:
            self._progress_file.close()

    def _follow(self) -> FollowResult:
        in_a_row, stop = 0, self.definition.stop
        for answer in self._answers():
            if answer.snapshot_id is None:
                reason = (
                    StopReason.BUDGET if answer.end is NoSnapshotReason.OVER else StopReason.DRAIN
                )
                return FollowResult(reason, max(answer.stored, self._made))
            records = self._evaluate(answer.snapshot_id, answer.stored)
            self.sink.append([*records])
            self._made += len(records)
            self._evaluated.append(answer.snapshot_id)
            is_success = any(
                record.source in _SCORES
                and is_reached(stop.success_score, record.mean)
                and not record.cut_episodes
                for record in records
            )
            in_a_row = in_a_row + 1 if is_success else 0
            if in_a_row >= stop.success_evaluations:
                return FollowResult(StopReason.SUCCESS_SCORE, max(answer.stored, self._made))
        raise AssertionError("requests have no end")

    def _answers(self) -> Iterator[SnapshotAnswer]:
        number = 0
        while True:
            number += 1
            snapshot_requests.write_request(
                self.directory, SnapshotRequest(number=number, evaluated=tuple(self._evaluated))
            )
            yield self._answer_to(number)

    def _answer_to(self, number: int) -> SnapshotAnswer:
        self._looks = 0
        while (answer := snapshot_requests.read_answer(self.directory, number)) is None:
            self._looks += 1
            self._note_waiting(is_waiting=True)
            time.sleep(_LOOK_SECONDS)
        self._note_waiting(is_waiting=False)
        return answer

    def _note_waiting(self, *, is_waiting: bool) -> None:
        if is_waiting != self._is_waiting:
            self._is_waiting = is_waiting
            self._progress_file.write()

    def _describe_progress(self) -> JsonObject:
        """Returns the content of the progress file.

        Polls for a snapshot and steps of evaluations count as progress: neither waiting nor a long
        evaluation is a stall.
        """
        clock = self.clock
        at = (0, 0, 0) if clock is None else (clock.env_steps, clock.updates, clock.episodes)
        return {
            **dict(zip(("env_step", "update", "episode"), at, strict=True)),
            "evaluation": self._progress.value,
            "evaluations": self._made,
            "looks": self._looks,
            "waiting": self._is_waiting,
        }

    def _evaluate(self, snapshot_id: str, stored: int) -> list[Evaluation]:
        snapshot = load_snapshot(
            self.directory.inputs / snapshot_id,
            run_id=self.run.run_id,
            definition_hash=hash_definition(self.definition),
        )
        clock = self.clock = StillClock.from_state(snapshot.state)
        with closing(self._evaluator(self._agent(snapshot), stored)) as evaluator:
            result = evaluator.evaluate(clock)
        return evaluation_records(
            self.run.run_id,
            clock,
            result,
            self.wall(),
            self._sources,
            snapshot_id=snapshot_id,
        )

    def _agent(self, snapshot: LoadedSnapshot) -> TrainableAgent:
        return load_agent(self.definition, self.run.seed, snapshot, self.device)

    @property
    def _sources(self) -> tuple[EvaluationSource, ...]:
        if self.schedule is Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA:
            return (EvaluationSource.TRAIN_DATA,)
        return list_job_sources(self.definition, self.run.policy)

    def _evaluator(self, agent: TrainableAgent, stored: int) -> ClosableEvaluator:
        if self.schedule is Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA:
            return build_train_data_evaluator(
                self.definition, agent, self.run.seed, self.run.episodes, self._progress
            )
        follow = self.run.follow or Follow()
        repeat = 0 if follow.only_once else max(stored, self._made)
        seeds = _seeds(self.run, follow, repeat)
        return build_evaluator(
            self.definition,
            agent,
            seeds,
            self.run.episodes,
            self._progress,
            policy=self.run.policy,
        )


def _seeds(run: RunOrder, follow: Follow, repeat: int) -> SeedRule:
    """Returns the rule by which evaluations are seeded.

    It gives the named seed for every snapshot, or else new episodes for each snapshot and
    repetition.
    """
    base = run.seed if run.evaluation_seed is None else run.evaluation_seed
    if follow.same_episodes:
        return fixed_seed_rule(base)
    return lambda clock: derive_seed(
        base, "followed", clock.env_steps, clock.updates, repeat, bits=53
    )
