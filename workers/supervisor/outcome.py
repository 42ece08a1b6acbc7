"""Decides how an attempt ended, from the trainer's report, exit status and orders. Pure."""

import signal
from dataclasses import dataclass
from typing import Final

from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.work_order import AttemptReport, Failure
from workers.ipc.bounded_text import shorten
from workers.ipc.failed_start import report_failed_start
from workers.ipc.full_disk import ADVICE, EXIT_STATUS, NO_SPACE
from workers.ipc.order_ends import ORDER_ENDS
from workers.supervisor.limits import Breach

_MAX_LAST_LINE: Final = 3_000
"""Characters of the last line of output in the message of a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerExit:
    """The facts about a trainer once its last process has ended."""

    exit_status: int | None
    """As `subprocess` counts: negative for a signal; `None` if no trainer was started."""
    report: AttemptReport | None
    """The report that the trainer wrote, if any."""
    is_started: bool = True
    """Whether the trainer had imported its modules."""
    order: Order
    """The strongest order that was given; `continue` if none was."""
    breach: Breach | None = None
    """The limit that was reached, if any."""
    was_killed_for_memory: bool = False
    """Whether the host ran out of memory."""
    is_disk_full: bool = False
    """Whether the attempt's disk is full."""
    last_line: str = ""
    """Last line of the trainer's output."""
    env_step: int = 0
    update: int = 0
    episode: int = 0


def report_of(ending: TrainerExit) -> AttemptReport:
    """Returns the report with which the attempt is released.

    A trainer that reported `succeeded` or `failed` keeps that outcome even if an order arrived at
    the same time. A trainer that was stopped for a limit failed with the limit's cause. A trainer
    that was killed after its grace period has the outcome of the order. Otherwise the cause is
    derived from the exit status; it is `not_started` if the trainer had not started.
    """
    report, breach = ending.report, ending.breach
    if report is not None and report.outcome in {Outcome.SUCCEEDED, Outcome.FAILED}:
        return report
    if breach is not None:
        return _failure_report(ending, breach.cause, breach.message)
    if report is not None:
        return report
    if ending.order in ORDER_ENDS:
        outcome, cause = ORDER_ENDS[ending.order]
        return _plain_report(ending, outcome, cause)
    return _report_sudden_end(ending)


def _report_sudden_end(ending: TrainerExit) -> AttemptReport:
    if not ending.is_started or ending.exit_status is None:
        return report_failed_start(_describe_failed_start(ending))
    status = ending.exit_status
    if status == EXIT_STATUS or (ending.is_disk_full and (status > 0 or status == -signal.SIGBUS)):
        return _failure_report(ending, Cause.DISK_FULL, ADVICE)
    last_line = shorten(ending.last_line, _MAX_LAST_LINE)
    tail = f" Its last line: {last_line}" if last_line else ""
    if ending.was_killed_for_memory:
        advice = (
            "The host ran out of memory. Lower agent.buffer_size or env.num_envs, or give the "
            "worker fewer slots."
        )
        return _failure_report(ending, Cause.HOST_OUT_OF_MEMORY, advice)
    if status < 0:
        return _failure_report(
            ending,
            Cause.TRAINER_KILLED,
            f"The trainer was killed by {_signal_name(-status)}.{tail}",
        )
    return _failure_report(
        ending,
        Cause.NO_RESULT,
        f"The trainer ended with exit status {status} and without a result.{tail}",
    )


def _describe_failed_start(ending: TrainerExit) -> str:
    """Returns why the trainer ended before it had started."""
    status = ending.exit_status
    if status is None:
        return "its supervisor did not start it."
    tail = f" Its last line: {ending.last_line}" if ending.last_line else ""
    if ending.is_disk_full:
        return f"{NO_SPACE}{tail}"
    if ending.was_killed_for_memory:
        return f"the host ran out of memory.{tail}"
    end = f"exit status {status}" if status >= 0 else _signal_name(-status)
    return f"it ended with {end} while it imported its modules.{tail}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure_report(ending: TrainerExit, cause: Cause, message: str) -> AttemptReport:
    return _plain_report(ending, Outcome.FAILED, cause).model_copy(
        update={"failure": Failure(message=message[:4_000])}
    )


def _plain_report(ending: TrainerExit, outcome: Outcome, cause: Cause) -> AttemptReport:
    base = ending.report or AttemptReport(
        outcome=outcome,
        cause=cause,
        env_step=ending.env_step,
        update=ending.update,
        episode=ending.episode,
    )
    return base.model_copy(update={"outcome": outcome, "cause": cause})
