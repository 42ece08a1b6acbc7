"""Renews and releases the leases of attempts."""

from typing import Any, Final

from app.db.engine import Session
from app.db.models.jobs import AttemptRow
from app.db.repositories import attempts as rows
from app.db.repositories import jobs as job_rows
from app.domain.errors import ConflictError, NotFoundError
from app.services.attempts import endings, failed_starts
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from app.services.views.jobs import build_attempt_views
from app.services.views.runs import build_backlog_view
from app.settings import Settings
from palestra.contract.resources import AttemptView
from palestra.contract.states import AttemptState, JobState, Order
from palestra.contract.work_order import (
    Release,
    Renewal,
    RenewalAnswer,
)

_ORDERS: Final = {
    JobState.PAUSING: Order.PAUSE,
    JobState.CANCELLING: Order.CANCEL,
    JobState.PREEMPTING: Order.DRAIN,
}


async def renew(
    session: Session, attempt_id: str, body: Renewal, settings: Settings
) -> RenewalAnswer:
    """Renews a lease and returns the pending order; `stale` once the attempt has ended.

    The first renewal sets the job to `running`. A lease that expired is renewed as long as the
    attempt was not marked as lost.

    Raises:
        NotFoundError: If there is no such attempt.
    """
    attempt = await _attempt(session, attempt_id)
    job = await job_rows.find_by_id(
        session, attempt.job_id, lock=attempt.state == AttemptState.STARTING
    )
    assert job is not None
    values: dict[str, Any] = body.model_dump(
        include={"env_step", "update", "spooled_seq", "trainer_pid", "compile"}
    )
    values["phase"] = body.phase
    before = build_backlog_view(attempt.backlog), attempt.phase
    values["backlog"] = endings.clean_document(body.backlog.model_dump(mode="json"))
    if not await rows.renew(session, attempt, values, settings.lease_seconds):
        return RenewalAnswer(
            order=Order.STALE, acked_seq=attempt.acked_seq, lease_seconds=settings.lease_seconds
        )
    if job.state == JobState.STARTING:
        await job_state.move(
            session, job, JobState.RUNNING, TransitionDetails(actor=f"attempt:{attempt.id}")
        )
    backlog = build_backlog_view(attempt.backlog)
    if (backlog, attempt.phase) != before:
        await job_state.append_events(
            session,
            job,
            {"not_uploaded": None if backlog is None else backlog.model_dump(mode="json")},
            {"phase": attempt.phase},
        )
    order = _ORDERS.get(job.state, Order.CONTINUE)
    return RenewalAnswer(
        order=order,
        acked_seq=attempt.acked_seq,
        lease_seconds=settings.lease_seconds,
        give_up=attempt.gives_up,
    )


async def release(session: Session, attempt_id: str, body: Release) -> AttemptView:
    """Ends an attempt with the outcome of its report; repeating it changes nothing.

    Raises:
        NotFoundError: If there is no such attempt.
        ConflictError: `stale_attempt` if the attempt was marked as lost; `telemetry_missing`
            while records of its spool are not acknowledged, with the number of the first such
            record as `expected_seq`.
    """
    # The job is locked first, as everywhere; what another transaction did meanwhile is read after.
    job = await job_rows.lock_of_attempt(session, attempt_id)
    attempt = await _attempt(session, attempt_id)
    assert job is not None
    if attempt.state == AttemptState.LOST:
        raise ConflictError(
            "stale_attempt", "This attempt was given up as lost. Stop; a newer one has the runs."
        )
    if attempt.state != AttemptState.ENDED:
        if attempt.acked_seq < body.last_seq:
            detail = "Records of this attempt are missing. Send them, then release again."
            raise ConflictError("telemetry_missing", detail, expected_seq=attempt.acked_seq + 1)
        ended = await endings.end_by_report(session, job, attempt, body.report)
        if ended is not None:
            await failed_starts.record_end(session, attempt.worker_id, body.report)
            return ended
    (view,) = await build_attempt_views(session, [attempt])
    return view


async def _attempt(session: Session, attempt_id: str) -> AttemptRow:
    attempt = await rows.find(session, attempt_id)
    if attempt is None:
        raise NotFoundError("attempt")
    return attempt
