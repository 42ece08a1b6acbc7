"""The trainer process: work order -> parts -> entry point -> report.

    python -m workers.trainer_process --attempt-dir DIR [--control-fd N]

Has no network and no token: it reads and writes files of its attempt's directory
(`ipc.attempt_directory`). It turns every end into one `AttemptReport`, written last; without the
option, the control pipe is named by the environment.
"""

import argparse
import faulthandler
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from palestra.contract.definition import Definition
from palestra.contract.names import ExportFormat, Schedule
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import AttemptReport, Failure, RunOrder, WorkOrder
from palestra.telemetry.spool import SpoolWriter
from workers.assembly.process_setup import prepare_process
from workers.assembly.registry import check_code
from workers.assembly.training import load_agent
from workers.core.types import StopReason
from workers.engine.clock import StillClock
from workers.export.onnx import require_packages
from workers.ipc import run_log
from workers.ipc.attempt_directory import CONTROL_FD_VARIABLE, AttemptDirectory, write_atomically
from workers.ipc.full_disk import EXIT_STATUS, is_full_error
from workers.trainer_process import train_attempt
from workers.trainer_process.control import ControlFlag
from workers.trainer_process.failures import describe_failure
from workers.trainer_process.running_attempt import RunningAttempt
from workers.trainer_process.schedules import native
from workers.trainer_process.schedules.continuous_evaluate import Follower


def main(arguments: Sequence[str] | None = None) -> int:
    """Executes the attempt of a directory; returns the exit status: 0 unless it failed."""
    options = _parse(arguments)
    faulthandler.enable()
    directory = AttemptDirectory(options.attempt_dir.resolve())
    attempt = RunningAttempt(
        directory, WorkOrder.model_validate_json(directory.work_order.read_bytes()), ControlFlag()
    )
    attempt.control.drain_at_sigterm()
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
    """Executes the attempt's schedule; an exception becomes the report of a failure."""
    try:
        order = attempt.order
        attempt.other_code = check_code(
            order.definition, order.code, allows_change=order.allow_code_change
        )
        _check_formats(attempt)
        attempt.device = prepare_process(attempt.order.resources, attempt.order.runs[0].seed)
        _record_start(attempt)
        return _WORK[attempt.order.schedule](attempt)
    # A root: everything becomes a report.
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001
        cause, failure = describe_failure(error, attempt.directory.root)
        return attempt.report(Outcome.FAILED, cause, failure)


def _check_formats(attempt: RunningAttempt) -> None:
    """Checks before the training that the packages for the requested exports are installed."""
    order = attempt.order
    formats = _formats(order.definition, order.runs[0])
    if "onnx" in formats and (order.schedule is Schedule.EXPORT or order.schedule.starts_runs):
        require_packages()


def _record_start(attempt: RunningAttempt) -> None:
    with SpoolWriter(attempt.directory.spool) as spool:
        for run in attempt.order.runs:
            spool.append(
                run_log.log_records(
                    run.run_id, [run_log.start_line(attempt.order, run, attempt.device)]
                )
            )


def _follow(attempt: RunningAttempt) -> AttemptReport:
    """Evaluates the run's snapshots one after another, as the supervisor provides them."""
    attempt.end_at_orders()
    order = attempt.order
    with attempt.open_records() as sink:
        follower = Follower(
            attempt.directory, order.definition, attempt.run, order.schedule, sink, attempt.device
        )
        followed = follower.follow()
    attempt.clock = follower.clock
    if followed.reason is StopReason.BUDGET and not followed.evaluations:
        nothing = (
            "The training of the run ended without a snapshot, so there was nothing to evaluate."
        )
        return attempt.report(Outcome.FAILED, Cause.NO_RESULT, Failure(message=nothing))
    return attempt.report_end(followed.reason)


def _evaluate(attempt: RunningAttempt) -> AttemptReport:
    snapshot = attempt.load_snapshot(attempt.run)
    attempt.clock = StillClock.from_state(snapshot.state)
    attempt.end_at_orders()
    records = native.evaluate(
        attempt.order.definition, attempt.run, snapshot, time.time(), attempt.device
    )
    with attempt.open_records() as sink:
        sink.append([*records])
    return attempt.report(Outcome.SUCCEEDED, Cause.BUDGET)


def _export(attempt: RunningAttempt) -> AttemptReport:
    run, definition = attempt.run, attempt.order.definition
    snapshot = attempt.load_snapshot(attempt.run)
    attempt.clock = StillClock.from_state(snapshot.state)
    attempt.end_at_orders()
    agent = load_agent(definition, run.seed, snapshot, attempt.device)
    native.export(
        definition,
        run,
        agent,
        attempt.clock,
        attempt.exports(run),
        _formats(definition, run) or ("weights",),
    )
    return attempt.report(Outcome.SUCCEEDED, Cause.BUDGET)


def _formats(definition: Definition, run: RunOrder) -> tuple[ExportFormat, ...]:
    """Returns the formats of an export job, or else those that the definition names."""
    return run.formats or definition.export.formats


_WORK: Final[dict[Schedule, Callable[[RunningAttempt], AttemptReport]]] = {
    Schedule.TRAIN: train_attempt.train,
    Schedule.TRAIN_AND_EVALUATE: train_attempt.train,
    Schedule.CONTINUOUS_TRAIN_AND_EVALUATE: train_attempt.train,
    Schedule.EVALUATE: _evaluate,
    Schedule.CONTINUOUS_EVAL: _follow,
    Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA: _follow,
    Schedule.TEST: train_attempt.test,
    Schedule.EXPORT: _export,
}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="workers.trainer_process", description="Executes one attempt."
    )
    parser.add_argument("--attempt-dir", type=Path, required=True)
    inherited = os.environ.get(CONTROL_FD_VARIABLE)
    parser.add_argument("--control-fd", type=int, default=int(inherited) if inherited else None)
    return parser.parse_args(arguments)
