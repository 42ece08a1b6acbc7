"""Lists, reads, pauses, resumes and cancels jobs."""

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as rows
from app.db.repositories.jobs import JobFilter
from app.domain import transitions
from app.domain.errors import ConflictError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services import offers
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from app.services.views import pages
from app.services.views.jobs import build_job_views
from palestra.contract.permissions import Permission
from palestra.contract.resources import CancelledJobView, JobView
from palestra.contract.states import Cause, JobState
from palestra.contract.views import Page

__all__ = [
    "JobFilter",
    "PageRequest",
    "apply_cancel",
    "apply_pause",
    "apply_resume",
    "cancel",
    "find",
    "find_to_control",
    "get",
    "list_jobs",
    "pause",
    "require_control",
    "resume",
]


async def list_jobs(
    session: Session, principal: Principal, wanted: JobFilter, request: PageRequest
) -> Page[JobView]:
    """Returns a page of the project's jobs; sorts by `created_at` and `priority`."""
    keys = build_keyset(request, rows.COLUMNS)
    found = await rows.list_page(session, principal.project_ids, wanted, keys)
    return await pages.cut(found, request, keys, lambda shown: build_job_views(session, shown))


async def get(session: Session, principal: Principal, job_id: str) -> JobView:
    """Returns the view of a job.

    Raises:
        NotFoundError: If the project has no job with that ID.
    """
    return await _view(session, await find(session, principal, job_id))


async def pause(session: Session, principal: Principal, job_id: str, reason: str = "") -> JobView:
    """Requests that a job saves a snapshot and releases its slot.

    A queued job is paused at once. Pausing a paused job changes nothing.

    Raises:
        NotFoundError: If the project has no job with that ID.
        ConflictError: If the job has ended or is being cancelled.
    """
    return await _view(session, await apply_pause(session, principal, job_id, reason))


async def apply_pause(
    session: Session, principal: Principal, job_id: str, reason: str = ""
) -> JobRow:
    """Requests that a job pauses like `pause`; returns its row."""
    job = await find_to_control(session, principal, job_id)
    if (to := transitions.find_state_after_pause(job.state)) is not None:
        await job_state.move(session, job, to, _reason(principal, reason))
    return job


async def resume(
    session: Session,
    principal: Principal,
    job_id: str,
    reason: str = "",
    *,
    allow_code_change: bool = False,
) -> JobView:
    """Queues a paused job again. Resuming a job that is queued or running changes nothing.

    Raises:
        NotFoundError: If the project has no job with that ID.
        ConflictError: If the job has ended, is being cancelled, or is still pausing;
            `code_changed` if the workers' code differs from the experiment's and
            `allow_code_change` is false.
    """
    row = await apply_resume(
        session, principal, job_id, reason, allow_code_change=allow_code_change
    )
    return await _view(session, row)


async def apply_resume(
    session: Session,
    principal: Principal,
    job_id: str,
    reason: str = "",
    *,
    allow_code_change: bool = False,
) -> JobRow:
    """Queues a paused job again like `resume`; returns its row."""
    job = await find_to_control(session, principal, job_id)
    if job.state == JobState.PAUSING:
        raise ConflictError(
            "still_pausing", "The job is saving its snapshot. Resume it once it is paused."
        )
    if job.state not in {JobState.QUEUED, JobState.STARTING, JobState.RUNNING}:
        await _check_code(session, job, allow=allow_code_change)
        await job_state.move(session, job, JobState.QUEUED, _reason(principal, reason))
    return job


async def _check_code(session: Session, job: JobRow, *, allow: bool) -> None:
    if allow and not job.allow_code_change:
        rows.allow_code_change(job)
    if not job.allow_code_change:
        experiment = await experiment_rows.find(session, job.project_id, job.experiment_id)
        assert experiment is not None
        await offers.check_same_code(session, experiment, job.pool)


async def cancel(
    session: Session, principal: Principal, job_id: str, reason: str = ""
) -> JobView | CancelledJobView:
    """Cancels a job; a running one saves a snapshot first. Cancelling twice changes nothing.

    An administrator of the server cancels jobs of all projects, and gets only the ID and the state
    of a job whose project the administrator may not read.

    Raises:
        NotFoundError: If no such job exists for the caller.
        ForbiddenError: If the caller may not act on it.
        ConflictError: With the code `already_final` if the job succeeded or failed.
    """
    job = await apply_cancel(session, principal, job_id, reason)
    if job.project_id not in principal.projects_with(Permission.PROJECT_READ):
        return CancelledJobView(id=job.id, state=job.state)
    return await _view(session, job)


async def apply_cancel(
    session: Session, principal: Principal, job_id: str, reason: str = ""
) -> JobRow:
    """Cancels a job like `cancel`; returns its row."""
    job = await _find_to_cancel(session, principal, job_id)
    if (to := transitions.find_state_after_cancel(job.state)) is not None:
        await job_state.move(session, job, to, _reason(principal, reason))
    return job


async def _find_to_cancel(session: Session, principal: Principal, job_id: str) -> JobRow:
    if not principal.permits(Permission.SERVER_CANCEL):
        return await find_to_control(session, principal, job_id)
    job = await rows.find_by_id(session, job_id, lock=True)
    if job is None:
        raise NotFoundError("job")
    return job


def _reason(principal: Principal, reason: str) -> TransitionDetails:
    return TransitionDetails(actor=describe_actor(principal), cause=Cause.USER, reason=reason)


async def find(
    session: Session, principal: Principal, job_id: str, *, lock: bool = False
) -> JobRow:
    """Returns the row of a job of the project.

    Raises:
        NotFoundError: If the project has no job with that ID.
    """
    job = await rows.find(session, principal.project_ids, job_id, lock=lock)
    if job is None:
        raise NotFoundError("job")
    return job


async def find_to_control(session: Session, principal: Principal, job_id: str) -> JobRow:
    """Returns the row of a job that the caller may pause, resume or cancel, locked.

    Raises:
        NotFoundError: If none of the caller's projects has a job of that ID.
        ForbiddenError: If the caller may not act on it.
    """
    job = await find(session, principal, job_id, lock=True)
    require_control(principal, job)
    return job


def require_control(principal: Principal, job: JobRow) -> None:
    """Refuses a caller who may not change a job.

    Raises:
        ForbiddenError: `not_yours` or `missing_permission`.
    """
    rights.require_control(principal, job.project_id, job.created_by)


async def _view(session: Session, job: JobRow) -> JobView:
    (view,) = await build_job_views(session, [job])
    return view
