"""Failed starts: a worker that cannot start trainers drains, with the reason."""

from app.db.engine import QUEUE, Session, announce
from app.db.repositories import workers as rows
from app.domain import attempt_end
from app.domain.retry import FAILED_STARTS
from app.services.attempts import endings
from app.services.attempts.worker_events import append_worker_event
from app.services.audit import audit_log
from palestra.contract.states import Cause
from palestra.contract.work_order import AttemptReport


async def record_end(session: Session, worker_id: str, report: AttemptReport) -> None:
    """Counts the failed starts in a row of a worker; makes it drain if there are too many.

    Any other end of an attempt shows that the worker can start trainers.

    Args:
        session: A writing session.
        worker_id: The worker of the attempt.
        report: How the attempt ended.
    """
    if report.cause is not Cause.NOT_STARTED:
        await rows.clear_failed_starts(session, worker_id)
        return
    if await rows.count_failed_start(session, worker_id) < FAILED_STARTS:
        return
    worker = await rows.find(session, worker_id)
    if worker is None or worker.draining:
        return
    message = (
        attempt_end.describe_cause(report.cause)
        if report.failure is None
        else endings.clean(report.failure).message
    )
    reason = f"{FAILED_STARTS} attempts in a row could not be started. {message}"
    await rows.set_draining(session, worker, draining=True, reason=reason)
    audit_log.record(
        session,
        "worker.drain",
        worker.id,
        project_id=None,
        actor=f"worker:{worker.id}",
        data={"reason": reason},
    )
    announce(session, QUEUE)
    await append_worker_event(session, worker)
