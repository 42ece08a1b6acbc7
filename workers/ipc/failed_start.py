"""The report of an attempt whose worker could not start the trainer."""

from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import AttemptReport, Failure


def report_failed_start(reason: str) -> AttemptReport:
    """Returns the report with which the attempt is released.

    Args:
        reason: Why the trainer did not start, as a clause without a capital letter.
    """
    message = f"The worker could not start the trainer: {reason}"
    return AttemptReport(
        outcome=Outcome.FAILED, cause=Cause.NOT_STARTED, failure=Failure(message=message[:4_000])
    )
