"""Attempts that train: one run, a pack of runs, or the test of a definition."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from palestra.contract.code import describe_code
from palestra.contract.names import Schedule
from palestra.contract.states import ResumeQuality
from palestra.contract.work_order import AttemptReport, RunEnd, RunOrder
from workers.acceleration.compilations import COMPILATIONS
from workers.assembly.training import Training, TrainingContext, assemble_pack, assemble_training
from workers.core.types import JsonObject, StopReason
from workers.engine.parts import RunResult
from workers.ipc import run_log
from workers.recording.progress_file import ProgressFile
from workers.recording.recorder import SharedSink, Sink
from workers.snapshot.snapshot_directory import LoadedSnapshot, read_snapshot
from workers.trainer_process.running_attempt import RunningAttempt, counters, end_of
from workers.trainer_process.schedules import native, smoke_test
from workers.trainer_process.stop_reasons import IMPOSED

_IMPLY_EXPORTS: Final = {Schedule.TRAIN_AND_EVALUATE, Schedule.TEST}
"""Schedules whose trainings export by default."""


def train(attempt: RunningAttempt) -> AttemptReport:
    if len(attempt.order.runs) > 1:
        return _train_pack(attempt)
    run = attempt.run
    snapshot = attempt.load_snapshot(run) if run.snapshot is not None else None
    with (
        attempt.open_records() as sink,
        _training(attempt, sink, attempt.directory.snapshots, snapshot) as training,
    ):
        attempt.resume_quality = _resume(training, snapshot)
        with _write_progress(attempt, training):
            result = native.train(training)
        _write_exports(attempt, run, training, result.reason)
    return attempt.report_end(result.reason, result.message)


def _train_pack(attempt: RunningAttempt) -> AttemptReport:
    """Trains the runs of a pack; the attempt ends with the last of them."""
    order = attempt.order
    snapshots = [None if run.snapshot is None else attempt.load_snapshot(run) for run in order.runs]
    starts = [None if snapshot is None else _describe_start(snapshot) for snapshot in snapshots]
    with ExitStack() as stack:
        sink = SharedSink(stack.enter_context(attempt.open_records()))
        contexts = [
            _context(attempt, run, sink, attempt.directory.snapshots, snapshot)
            for run, snapshot in zip(order.runs, snapshots, strict=True)
        ]
        pack = assemble_pack(contexts, starts, stack)
        attempt.clock, attempt.compile = pack.trainings[0].engine.clock, pack.trainings[0].compile
        for training in pack.trainings:
            _note_code(attempt, training)
        qualities = [
            _resume(training, snapshot)
            for training, snapshot in zip(pack.trainings, snapshots, strict=True)
        ]

        def on_end(index: int) -> None:
            run, training = order.runs[index], pack.trainings[index]
            result = training.engine.result
            _write_exports(attempt, run, training, result.reason)
            end = attempt.ends[index] = RunEnd(
                run_id=run.run_id,
                resume_quality=qualities[index],
                **end_of(result.reason, result.message),
                **counters(training.engine.clock),
            )
            sink.append(list(run_log.log_records(run.run_id, run_log.end_lines(end))))

        with _write_progress(attempt, *pack.trainings):
            results = native.train_pack(pack, on_end)
    attempt.resume_quality = (
        ResumeQuality.STATISTICAL if ResumeQuality.STATISTICAL in qualities else qualities[0]
    )
    end = _end_of_pack(results)
    return attempt.report_end(end.reason, end.message)


def _describe_start(snapshot: LoadedSnapshot) -> tuple[int, int, bool]:
    """Returns what runs must have in common to go on as one pack."""
    manifest = snapshot.manifest
    return manifest.env_step, manifest.update, manifest.scales_by_bounds


def _end_of_pack(results: Sequence[RunResult]) -> RunResult:
    """Returns the result of the run that decides how the attempt of a pack ended.

    It is an order that any run obeyed, else the end of a complete run, else that of a failed one.
    """
    ordered = [result for result in results if result.reason in IMPOSED]
    complete = [result for result in results if result.reason.completes_run]
    return (ordered or complete or list(results))[0]


def _resume(training: Training, snapshot: LoadedSnapshot | None) -> ResumeQuality:
    if snapshot is None:
        return ResumeQuality.FRESH
    exact = training.resume(snapshot).is_exact and snapshot.manifest.resume_exact
    return ResumeQuality.EXACT if exact else ResumeQuality.STATISTICAL


def _write_exports(
    attempt: RunningAttempt, run: RunOrder, training: Training, reason: StopReason
) -> None:
    """Writes the exports of a run that is complete."""
    if reason.completes_run:
        definition, implied = attempt.order.definition, attempt.order.schedule in _IMPLY_EXPORTS
        formats = native.export_formats(definition, training.agent, exports_by_default=implied)
        native.export(
            definition, run, training.agent, training.engine.clock, attempt.exports(run), formats
        )


def test(attempt: RunningAttempt) -> AttemptReport:
    """Runs each step of a training once: an update, an evaluation, a snapshot and exports.

    Its snapshot is written, read back and removed, and no record names it.
    """
    run = attempt.run
    attempt.end_at_orders()
    scratch = attempt.directory.root / "scratch"
    try:
        with (
            attempt.open_records() as sink,
            _training(attempt, smoke_test.SmokeTestSink(sink), scratch) as training,
        ):
            with _write_progress(attempt, training):
                result = smoke_test.run_smoke_test(training)
            if result.reason.completes_run:
                read_snapshot(scratch / str(result.snapshot_id))
                _write_exports(attempt, run, training, result.reason)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return attempt.report_end(result.reason, result.message)


def _training(
    attempt: RunningAttempt,
    sink: Sink,
    snapshots: Path,
    snapshot: LoadedSnapshot | None = None,
) -> Training:
    training = assemble_training(_context(attempt, attempt.run, sink, snapshots, snapshot))
    attempt.clock, attempt.compile = training.engine.clock, training.compile
    _note_code(attempt, training)
    return training


def _note_code(attempt: RunningAttempt, training: Training) -> None:
    if attempt.other_code is not None:
        code = describe_code(attempt.other_code)
        message = f"This attempt runs other code than the experiment's: {code}"
        training.recorder.record_note("code_changed", message)


def _context(
    attempt: RunningAttempt,
    run: RunOrder,
    sink: Sink,
    snapshots: Path,
    snapshot: LoadedSnapshot | None,
) -> TrainingContext:
    return TrainingContext(
        order=attempt.order,
        run=run,
        snapshots=snapshots,
        videos=attempt.directory.videos / run.run_id,
        sink=sink,
        control=attempt.control,
        device=attempt.device,
        scales_by_bounds=snapshot is None or snapshot.manifest.scales_by_bounds,
    )


@contextmanager
def _write_progress(attempt: RunningAttempt, *trainings: Training) -> Iterator[None]:
    """Writes the progress of the trainings for the supervisor while the context is open.

    Updates that cannot be compiled are noted.

    The counters are those of the first run, to which the supervisor attributes its measurements.
    Iterations and evaluations are summed over all runs, so that the file changes as long as any run
    makes progress. Clocks are read without a lock, so counters may be one iteration apart.
    """
    clocks = [training.engine.clock for training in trainings]

    def describe() -> JsonObject:
        return {
            "env_step": clocks[0].env_steps,
            "update": clocks[0].updates,
            "episode": clocks[0].episodes,
            "iteration": sum(clock.iterations for clock in clocks),
            "evaluation": sum(training.evaluation_progress.value for training in trainings),
            "compile": attempt.compile,
            "compiling": COMPILATIONS.are_under_way,
        }

    def note_failure(reason: str) -> None:
        for training in trainings:
            training.recorder.record_note("compile_failed", reason)

    COMPILATIONS.on_failure = note_failure
    progress = ProgressFile(attempt.directory.progress, describe)
    progress.start()
    try:
        yield
    finally:
        progress.close()
