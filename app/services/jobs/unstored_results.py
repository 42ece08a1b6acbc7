"""Discards the results that a worker has not uploaded yet, at a user's request."""

from collections.abc import Mapping
from typing import Any, Final

from app.db.engine import Session
from app.db.repositories import attempts as rows
from app.domain.errors import ConflictError
from app.domain.principal import Principal
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.jobs import job_state, jobs
from app.services.views.jobs import build_job_views
from palestra.contract.resources import JobView

__all__ = ["give_up"]

_NOTHING: Final = "No result of this job only waits to be uploaded. Cancel the job to end its work."


async def give_up(session: Session, principal: Principal, job_id: str, reason: str = "") -> JobView:
    """Discards the results that a job's worker has not uploaded yet.

    The worker then ends the attempt without them. Calling it twice changes nothing.

    Raises:
        NotFoundError: If the project has no job with that ID.
        ConflictError: `nothing_to_give_up` unless the job's trainer has ended and only uploads
            remain.
    """
    job = await jobs.find_to_control(session, principal, job_id)
    attempt = await rows.find_live_by_job(session, job.id)
    shown: Mapping[str, Any] = {} if attempt is None else attempt.backlog or {}
    if attempt is None or not shown.get("delivering"):
        raise ConflictError("nothing_to_give_up", _NOTHING)
    if not attempt.gives_up:
        rows.give_up_uploads(attempt)
        audit_log.record(
            session,
            "job.give_up",
            job.id,
            project_id=job.project_id,
            actor=describe_actor(principal),
            data={"attempt": attempt.number, "reason": reason, **shown},
        )
        await job_state.append_events(session, job)
    (view,) = await build_job_views(session, [job])
    return view
