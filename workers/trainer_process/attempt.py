"""The trainer process: work order -> parts -> entry point -> report.

    python -m workers.trainer_process --attempt-dir DIR [--control-fd N]

Has no network and no token: it reads and writes files of its attempt's directory
(`ipc.attempt_directory`). It turns every end into one `AttemptReport`, written last; without the
option, the control pipe is named by the environment.
"""

import argparse
import faulthandler
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from palestra.contract.definition import AnyCode, Definition, definition_hash, shown_code
from palestra.contract.names import ExportFormat, Schedule
from palestra.contract.states import Cause, Outcome, ResumeQuality
from palestra.contract.work_order import AttemptReport, Failure, RunEnd, RunOrder, WorkOrder
from palestra.telemetry.spool import SpoolWriter
from workers.assembly.process_setup import prepare_process
from workers.assembly.registry import check_code
from workers.assembly.training import Training, TrainingContext, assemble_pack, assemble_training
from workers.core.errors import DefinitionError
from workers.core.protocols import ClockView
from workers.core.types import JsonObject, StopReason
from workers.engine.clock import StillClock
from workers.export.onnx import require_packages
from workers.ipc import run_log
from workers.ipc.attempt_directory import CONTROL_FD_VARIABLE, AttemptDirectory, write_atomically
from workers.ipc.full_disk import EXIT_STATUS, is_full_error
from workers.recording.progress_file import ProgressFile
from workers.recording.recorder import SharedSink, Sink
from workers.snapshot.attempt_store import load_snapshot
from workers.snapshot.owner import device_name, versions
from workers.snapshot.snapshot_directory import LoadedSnapshot, read_snapshot
from workers.trainer_process.control import ControlFlag
from workers.trainer_process.failures import describe_failure
from workers.trainer_process.run_log_sink import TellingSink
from workers.trainer_process.schedules import native, smoke_test
from workers.trainer_process.schedules.continuous_evaluate import Follower
from workers.trainer_process.stop_reasons import ATTEMPT_ENDS, IMPOSED

_FAILURES: Final = {
    StopReason.DIVERGED: (
        "The loss was not finite for as many updates as nan_guard allows: lower the learning rate, "
        "or clip gradients."
    ),
}

_IMPLY_EXPORTS: Final = {Schedule.TRAIN_AND_EVALUATE, Schedule.TEST}
"""Schedules whose trainings leave an export without being told to."""


@dataclass(slots=True)
class RunningAttempt:
    """What one attempt knows about itself while it runs."""

    directory: AttemptDirectory
    order: WorkOrder
    control: ControlFlag
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    resume_quality: ResumeQuality = ResumeQuality.FRESH
    clock: ClockView | None = None
    device: str = "cpu"
    other_code: AnyCode | None = None
    """The code that runs, where it is not the one of the work order."""
    ends: dict[int, RunEnd] = field(default_factory=dict)
    """Of the runs of a pack that have ended, by their place in it: also where another one fails
    later.
    """

    @property
    def run(self) -> RunOrder:
        """The one run of the work order.

        Raises:
            DefinitionError: If it carries a pack of several.
        """
        if len(self.order.runs) != 1:
            schedule = self.order.schedule.value
            raise DefinitionError(
                f"a job of the schedule {schedule!r} is on one run, not on a pack of "
                f"{len(self.order.runs)}"
            )
        return self.order.runs[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Executes the attempt of a directory; returns the exit status: 0 unless it failed."""
    options = _parse(arguments)
    faulthandler.enable()
    directory = AttemptDirectory(options.attempt_dir.resolve())
    attempt = RunningAttempt(
        directory, WorkOrder.model_validate_json(directory.work_order.read_bytes()), ControlFlag()
    )
    attempt.control.obey_sigterm()
    if options.control_fd is not None:
        attempt.control.listen(options.control_fd)
    report = execute(attempt)
    try:
        write_atomically(directory.report, report.model_dump_json(indent=1).encode())
    except OSError as error:
        if not is_full_error(error):
            raise
        return EXIT_STATUS
    return 1 if report.outcome is Outcome.FAILED else 0


def execute(attempt: RunningAttempt) -> AttemptReport:
    """Does what the attempt's schedule says; whatever is raised becomes the report of a failure."""
    try:
        order = attempt.order
        attempt.other_code = check_code(
            order.definition, order.code, allow_change=order.allow_code_change
        )
        _check_formats(attempt)
        attempt.device = prepare_process(attempt.order.resources, attempt.order.runs[0].seed)
        _record_start(attempt)
        return _WORK[attempt.order.schedule](attempt)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a root: everything becomes a report
        cause, failure = describe_failure(error, attempt.directory.root)
        return _report(attempt, Outcome.FAILED, cause, failure)


def _check_formats(attempt: RunningAttempt) -> None:
    """Tells of a package that an export needs before hours are spent on what it exports."""
    order = attempt.order
    formats = _formats(order.definition, order.runs[0])
    if "onnx" in formats and (order.schedule is Schedule.EXPORT or order.schedule.starts_runs):
        require_packages()


def _record_start(attempt: RunningAttempt) -> None:
    with SpoolWriter(attempt.directory.spool) as spool:
        for run in attempt.order.runs:
            spool.append(
                run_log.lines(run.run_id, [run_log.started(attempt.order, run, attempt.device)])
            )


@contextmanager
def _records(attempt: RunningAttempt) -> Iterator[TellingSink]:
    """Opens the spool for the records of a job, each with its line in the log."""
    with SpoolWriter(attempt.directory.spool) as spool:
        yield TellingSink(spool)


def _train(attempt: RunningAttempt) -> AttemptReport:
    if len(attempt.order.runs) > 1:
        return _train_pack(attempt)
    run = attempt.run
    snapshot = _load_snapshot(attempt, run) if run.snapshot is not None else None
    with (
        _records(attempt) as sink,
        _training(attempt, sink, attempt.directory.snapshots) as training,
    ):
        attempt.resume_quality = _resumed(training, snapshot)
        with _shown(attempt, training):
            reason = native.train(training).reason
        _leave_exports(attempt, run, training, reason)
    return _ended(attempt, reason)


def _train_pack(attempt: RunningAttempt) -> AttemptReport:
    """Trains several runs, whose attempt ends with the last of them."""
    order = attempt.order
    snapshots = [
        None if run.snapshot is None else _load_snapshot(attempt, run) for run in order.runs
    ]
    starts = [
        None if snapshot is None else (snapshot.manifest.env_step, snapshot.manifest.update)
        for snapshot in snapshots
    ]
    with ExitStack() as stack:
        sink = SharedSink(stack.enter_context(_records(attempt)))
        contexts = [_context(attempt, run, sink, attempt.directory.snapshots) for run in order.runs]
        pack = assemble_pack(contexts, starts, stack)
        attempt.clock = pack.trainings[0].engine.clock
        for training in pack.trainings:
            _note_code(attempt, training)
        qualities = [
            _resumed(training, snapshot)
            for training, snapshot in zip(pack.trainings, snapshots, strict=True)
        ]

        def left(index: int) -> None:
            run, training = order.runs[index], pack.trainings[index]
            reason = training.engine.result.reason
            _leave_exports(attempt, run, training, reason)
            counters = _counters(training.engine.clock)
            end = attempt.ends[index] = RunEnd(
                run_id=run.run_id, resume_quality=qualities[index], **_why(reason), **counters
            )
            sink.append(list(run_log.lines(run.run_id, run_log.ended(end))))

        with _shown(attempt, *pack.trainings):
            reasons = [result.reason for result in native.train_pack(pack, left)]
    attempt.resume_quality = (
        ResumeQuality.STATISTICAL if ResumeQuality.STATISTICAL in qualities else qualities[0]
    )
    return _ended(attempt, _reason_of_pack(reasons))


def _reason_of_pack(reasons: Sequence[StopReason]) -> StopReason:
    """Returns the reason for which the attempt of a pack ended.

    It is an order that any run obeyed, else the end of a complete run, else that of a failed one.
    """
    ordered = [reason for reason in reasons if reason in IMPOSED]
    complete = [reason for reason in reasons if reason.completes_run]
    return (ordered or complete or list(reasons))[0]


def _resumed(training: Training, snapshot: LoadedSnapshot | None) -> ResumeQuality:
    if snapshot is None:
        return ResumeQuality.FRESH
    exact = training.resume(snapshot).exact and snapshot.manifest.resume_exact
    return ResumeQuality.EXACT if exact else ResumeQuality.STATISTICAL


def _leave_exports(
    attempt: RunningAttempt, run: RunOrder, training: Training, reason: StopReason
) -> None:
    """Exports what a run that is complete is to leave."""
    if reason.completes_run:
        definition, implied = attempt.order.definition, attempt.order.schedule in _IMPLY_EXPORTS
        formats = native.export_formats(definition, training.agent, implied=implied)
        native.export(
            definition, run, training.agent, training.engine.clock, _exports(attempt, run), formats
        )


def _test(attempt: RunningAttempt) -> AttemptReport:
    """Goes once through all that a training does.

    Its snapshot is written, read back and removed, and no record names it.
    """
    run = attempt.run
    _end_at_orders(attempt)
    scratch = attempt.directory.root / "scratch"
    try:
        with (
            _records(attempt) as sink,
            _training(attempt, smoke_test.TrialSink(sink), scratch) as training,
        ):
            with _shown(attempt, training):
                result = smoke_test.try_out(training)
            if result.reason.completes_run:
                read_snapshot(scratch / str(result.snapshot_id))
                _leave_exports(attempt, run, training, result.reason)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return _ended(attempt, result.reason)


def _training(attempt: RunningAttempt, sink: Sink, snapshots: Path) -> Training:
    training = assemble_training(_context(attempt, attempt.run, sink, snapshots))
    attempt.clock = training.engine.clock
    _note_code(attempt, training)
    return training


def _note_code(attempt: RunningAttempt, training: Training) -> None:
    if attempt.other_code is not None:
        message = (
            f"This attempt runs other code than the experiment's: {shown_code(attempt.other_code)}"
        )
        training.recorder.note("code_changed", message)


def _context(
    attempt: RunningAttempt, run: RunOrder, sink: Sink, snapshots: Path
) -> TrainingContext:
    return TrainingContext(
        order=attempt.order,
        run=run,
        snapshots=snapshots,
        videos=attempt.directory.videos / run.run_id,
        sink=sink,
        control=attempt.control,
        device=attempt.device,
    )


@contextmanager
def _shown(attempt: RunningAttempt, *trainings: Training) -> Iterator[None]:
    """Tells the supervisor how far the trainings are."""
    progress = ProgressFile(
        attempt.directory.progress, [training.engine.clock for training in trainings]
    )
    progress.start()
    try:
        yield
    finally:
        progress.close()


def _ended(attempt: RunningAttempt, reason: StopReason) -> AttemptReport:
    return _report(attempt, **_why(reason))


def _why(reason: StopReason) -> JsonObject:
    outcome, cause = ATTEMPT_ENDS[reason]
    return {
        "outcome": outcome,
        "cause": cause,
        "failure": Failure(message=_FAILURES[reason]) if reason in _FAILURES else None,
    }


def _counters(clock: ClockView) -> JsonObject:
    return {"env_step": clock.env_steps, "update": clock.updates, "episode": clock.episodes}


def _follow(attempt: RunningAttempt) -> AttemptReport:
    """Evaluates the snapshots of the run, one after another, as the supervisor hands them in."""
    _end_at_orders(attempt)
    order = attempt.order
    with _records(attempt) as sink:
        follower = Follower(
            attempt.directory, order.definition, attempt.run, order.schedule, sink, attempt.device
        )
        followed = follower.follow()
    attempt.clock = follower.clock
    if followed.reason is StopReason.BUDGET and not followed.evaluations:
        nothing = (
            "The training of the run ended without a snapshot, so there was nothing to evaluate."
        )
        return _report(attempt, Outcome.FAILED, Cause.NO_RESULT, Failure(message=nothing))
    return _ended(attempt, followed.reason)


def _evaluate(attempt: RunningAttempt) -> AttemptReport:
    snapshot = _load_snapshot(attempt, attempt.run)
    attempt.clock = StillClock.of(snapshot.state)
    _end_at_orders(attempt)
    record = native.evaluate(
        attempt.order.definition, attempt.run, snapshot, time.time(), attempt.device
    )
    with _records(attempt) as sink:
        sink.append([record])
    return _report(attempt, Outcome.SUCCEEDED, Cause.BUDGET)


def _export(attempt: RunningAttempt) -> AttemptReport:
    run, definition = attempt.run, attempt.order.definition
    snapshot = _load_snapshot(attempt, attempt.run)
    attempt.clock = StillClock.of(snapshot.state)
    _end_at_orders(attempt)
    agent = native.load_agent(definition, run.seed, snapshot, attempt.device)
    native.export(
        definition,
        run,
        agent,
        attempt.clock,
        _exports(attempt, run),
        _formats(definition, run) or ("weights",),
    )
    return _report(attempt, Outcome.SUCCEEDED, Cause.BUDGET)


def _formats(definition: Definition, run: RunOrder) -> tuple[ExportFormat, ...]:
    """Returns the formats of an export job, or else those that the definition names."""
    return run.formats or definition.export.formats


_WORK: Final[dict[Schedule, Callable[[RunningAttempt], AttemptReport]]] = {
    Schedule.TRAIN: _train,
    Schedule.TRAIN_AND_EVALUATE: _train,
    Schedule.CONTINUOUS_TRAIN_AND_EVALUATE: _train,
    Schedule.EVALUATE: _evaluate,
    Schedule.CONTINUOUS_EVAL: _follow,
    Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA: _follow,
    Schedule.TEST: _test,
    Schedule.EXPORT: _export,
}


def _load_snapshot(attempt: RunningAttempt, run: RunOrder) -> LoadedSnapshot:
    reference = run.snapshot
    if reference is None:
        raise DefinitionError(
            f"a job of the schedule {attempt.order.schedule.value!r} needs a snapshot, and the "
            "work order names none"
        )
    directory = attempt.directory.inputs / reference.snapshot_id
    return load_snapshot(
        directory, run_id=run.run_id, definition_hash=definition_hash(attempt.order.definition)
    )


def _exports(attempt: RunningAttempt, run: RunOrder) -> Path:
    return attempt.directory.exports / run.run_id


def _end_at_orders(attempt: RunningAttempt) -> None:
    """Where there is no state to save, an order ends the process as soon as it is heard."""

    def end(reason: StopReason) -> None:
        outcome, cause = ATTEMPT_ENDS[reason]
        write_atomically(
            attempt.directory.report,
            _report(attempt, outcome, cause).model_dump_json(indent=1).encode(),
        )
        os._exit(0)

    attempt.control.call_at_order(end)


def _report(
    attempt: RunningAttempt, outcome: Outcome, cause: Cause, failure: Failure | None = None
) -> AttemptReport:
    return AttemptReport(
        outcome=outcome,
        cause=cause,
        failure=failure,
        resume_quality=attempt.resume_quality,
        **(_counters(attempt.clock) if attempt.clock else {}),
        provenance=_provenance(attempt),
        runs=tuple(attempt.ends[index] for index in sorted(attempt.ends)),
    )


def _provenance(attempt: RunningAttempt) -> JsonObject:
    other = attempt.other_code
    return {
        **({} if other is None else {"other_code": other.model_dump(mode="json")}),
        "started": attempt.started,
        "ended": datetime.now(UTC).isoformat(),
        "versions": versions(),
        "device": device_name(attempt.device),
        "cpu_threads": attempt.order.resources.cpu_threads,
        "pid": os.getpid(),
        "command": sys.argv,
    }


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="workers.trainer_process", description="Executes one attempt."
    )
    parser.add_argument("--attempt-dir", type=Path, required=True)
    inherited = os.environ.get(CONTROL_FD_VARIABLE)
    parser.add_argument("--control-fd", type=int, default=int(inherited) if inherited else None)
    return parser.parse_args(arguments)
