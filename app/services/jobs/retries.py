"""Retries: queue a further job for a run whose latest training failed or was cancelled."""

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.models.jobs import JobRow
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.domain.errors import ConflictError
from app.domain.principal import Principal
from app.services import offers
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.jobs import job_creation
from app.services.jobs.job_creation import JobStart
from app.services.runs import runs
from app.services.views.jobs import build_job_views
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import JobRequest, RetryRequest
from palestra.contract.resources import JobView
from palestra.contract.states import RunState

_INSTEAD = {
    RunState.QUEUED: "It is queued: wait for a worker.",
    RunState.RUNNING: "It is running: wait until it ends, or cancel it.",
    RunState.PAUSED: "It is paused: resume it.",
    RunState.SUCCEEDED: "It succeeded: there is nothing to try again.",
}


async def retry(
    session: Session, principal: Principal, run_id: str, request: RetryRequest
) -> JobView:
    """Queues a training job with the options of the run's latest one.

    Its first attempt resumes from the newest verified snapshot, or starts from the beginning.
    Points that the run recorded after that snapshot are superseded when the job is claimed, as at
    every resume.

    Raises:
        NotFoundError: If the project has no such run.
        ForbiddenError: If the caller may not act on it.
        ConflictError: `not_failed` unless the run failed or was cancelled; `code_changed` if the
            workers' code differs from the experiment's and the request does not allow that;
            `run_busy` if another training job of the run has not ended.
        InvalidError: If the workers of the pool cannot execute the job.
    """
    job = await apply_retry(session, principal, run_id, request)
    (view,) = await build_job_views(session, [job])
    return view


async def apply_retry(
    session: Session, principal: Principal, run_id: str, request: RetryRequest
) -> JobRow:
    """Queues a training job like `retry`; returns its row."""
    run = await find_run(session, principal, run_id)
    job = await _latest(session, run)
    if not request.allow_code_change:
        experiment = await experiment_rows.find(session, run.project_id, run.experiment_id)
        assert experiment is not None
        await offers.check_same_code(session, experiment, job.pool)
    start = JobStart(afresh=request.origin == "start", allow_code_change=request.allow_code_change)
    new = await job_creation.queue_job(session, principal, run.id, _same(job), start)
    _audit(session, principal, run, new, request)
    return new


async def find_run(session: Session, principal: Principal, run_id: str) -> RunRow:
    """Returns a run that the caller may retry.

    Raises:
        NotFoundError: If the project has no such run.
        ForbiddenError: If the caller may not act on it.
    """
    run = await runs.find(session, principal, run_id)
    rights.require_control(principal, run.project_id, run.created_by)
    return run


async def _latest(session: Session, run: RunRow) -> JobRow:
    state = run.state
    if state in _INSTEAD:
        raise ConflictError(
            "not_failed",
            f"Only a run that failed or was cancelled is tried again. {_INSTEAD[state]}",
        )
    job = None if run.job_id is None else await job_rows.find_by_id(session, run.job_id)
    assert job is not None
    return job


def _same(job: JobRow) -> JobRequest:
    names = ("schedule", "pool", "priority_class", "priority", "resources", "limits")
    return JobRequest.model_validate_json(
        encode_canonical_json({name: getattr(job, name) for name in names})
    )


def _audit(
    session: Session, principal: Principal, run: RunRow, job: JobRow, request: RetryRequest
) -> None:
    audit_log.record(
        session,
        "run.retry",
        run.id,
        project_id=run.project_id,
        actor=describe_actor(principal),
        data={"job": job.id, "origin": request.origin, "reason": request.reason},
    )
