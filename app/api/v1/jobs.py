"""Jobs: list, read, change, reorder, pause, resume, cancel."""

from typing import Annotated

from fastapi import Depends, Query

from app.api.auth import Controller, JobCanceller, LimitedToProject, Reader
from app.api.deps import DatabaseDep, ReadSession, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.api.user_filter import SubmittedBy
from app.domain.paging import PageRequest
from app.services.jobs import (
    change_preview,
    explanation,
    job_batches,
    jobs,
    unstored_results,
    waiting_jobs,
)
from app.services.jobs.jobs import JobFilter
from palestra.contract.change_preview import ChangePreview
from palestra.contract.job_batches import JobsActed, JobsAction
from palestra.contract.job_changes import JobChange, JobReorder
from palestra.contract.names import Schedule
from palestra.contract.queue import JobExplanation
from palestra.contract.resources import CancelledJobView, JobAction, JobView, ResumeAction
from palestra.contract.states import JobState
from palestra.contract.views import Page

router = ResourceRouter(prefix="/jobs", tags=["jobs"])
limited_router = ResourceRouter(prefix="/jobs", tags=["jobs"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

JobPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "priority")))
]
Text = Annotated[str | None, Query(max_length=128)]
States = Annotated[
    list[JobState] | None,
    Query(max_length=len(JobState), description="May be given several times."),
]
Action = Annotated[JobAction, Depends(JsonBody(JobAction, required=False))]
Resume = Annotated[ResumeAction, Depends(JsonBody(ResumeAction, required=False))]


async def read_job_filter(
    user: SubmittedBy,
    experiment: Text = None,
    run: Text = None,
    pool: Text = None,
    state: States = None,
    schedule: Schedule | None = None,
) -> JobFilter:
    """Reads which jobs to list."""
    return JobFilter(
        experiment_id=experiment,
        run_id=run,
        pool=pool,
        states=state or (),
        schedule=schedule,
        user=user,
    )


@limited_router.post(":act")
async def act_on_jobs(
    principal: Controller,
    body: Annotated[JobsAction, Depends(JsonBody(JobsAction))],
    session: WriteSession,
) -> JobsActed:
    """Pauses, resumes, cancels or changes many jobs: those named, or all that match.

    One request acts on 100 jobs at most, and on fewer where they take longer than half a second;
    the next one goes on with `next_after`. With `dry_run` it only counts them. A job for which the
    action is refused does not keep others from it.
    """
    return await job_batches.act(session, principal, body)


@limited_router.post(":preview-act")
async def preview_action(
    principal: Controller,
    body: Annotated[JobsAction, Depends(JsonBody(JobsAction))],
    database: DatabaseDep,
) -> ChangePreview:
    """Returns what an action on many jobs would do to the queue; writes nothing.

    Takes the body of the action, of which it tries one request: at most 100 jobs.
    """
    return await change_preview.preview_action(database, principal, body)


@limited_router.get("")
async def list_jobs(
    principal: Reader,
    session: ReadSession,
    page: JobPage,
    wanted: Annotated[JobFilter, Depends(read_job_filter)],
) -> Page[JobView]:
    """Lists the jobs of the projects that the caller may read, page by page."""
    return await jobs.list_jobs(session, principal, wanted, page)


@router.get("/{job_id}")
async def get_job(job_id: str, principal: Reader, session: ReadSession) -> JobView:
    """Returns a job with its state, its options and, if it is queued, its place in the queue."""
    return await jobs.get(session, principal, job_id)


@router.get("/{job_id}/explain")
async def explain_job(job_id: str, principal: Reader, session: ReadSession) -> JobExplanation:
    """Explains why a job has not started, with everything that decides its place in the queue."""
    return await explanation.explain(session, principal, job_id)


@router.patch("/{job_id}", responses={409: {}})
async def change_job(
    job_id: str,
    principal: Controller,
    body: Annotated[JobChange, Depends(JsonBody(JobChange))],
    session: WriteSession,
) -> JobView:
    """Changes the class, the priority or limits of a waiting job."""
    return await waiting_jobs.change(session, principal, job_id, body)


@router.post("/{job_id}:preview-change", responses={409: {}})
async def preview_change(
    job_id: str,
    principal: Controller,
    body: Annotated[JobChange, Depends(JsonBody(JobChange))],
    database: DatabaseDep,
) -> ChangePreview:
    """Returns what a change of a waiting job would do to the queue; writes nothing.

    Takes the body of the change, and refuses it like the change.
    """
    return await change_preview.preview_change(database, principal, job_id, body)


@router.post("/{job_id}:reorder", responses={409: {}})
async def reorder_job(
    job_id: str,
    principal: Controller,
    body: Annotated[JobReorder, Depends(JsonBody(JobReorder))],
    session: WriteSession,
) -> JobView:
    """Moves a waiting job among the jobs of the same person.

    Only maintainers move it before a job of another person; it then gets the class
    `urgent`.
    """
    return await waiting_jobs.reorder(session, principal, job_id, body.before)


@router.post("/{job_id}:preview-reorder", responses={409: {}})
async def preview_reorder(
    job_id: str,
    principal: Controller,
    body: Annotated[JobReorder, Depends(JsonBody(JobReorder))],
    database: DatabaseDep,
) -> ChangePreview:
    """Returns what a move of a waiting job would do to the queue; writes nothing.

    Takes the body of the move, and refuses it like the move.
    """
    return await change_preview.preview_order(database, principal, job_id, body.before)


@router.post("/{job_id}:pause", responses={409: {}})
async def pause_job(
    job_id: str, principal: Controller, body: Action, session: WriteSession
) -> JobView:
    """Pauses a job: it saves a snapshot and releases its slot."""
    return await jobs.pause(session, principal, job_id, body.reason)


@router.post("/{job_id}:resume", responses={409: {}})
async def resume_job(
    job_id: str, principal: Controller, body: Resume, session: WriteSession
) -> JobView:
    """Queues a paused job again.

    Refused if the workers' code differs from the experiment's, unless `allow_code_change` is set.
    """
    return await jobs.resume(
        session, principal, job_id, body.reason, allow_code_change=body.allow_code_change
    )


@router.post("/{job_id}:cancel", responses={409: {}})
async def cancel_job(
    job_id: str, principal: JobCanceller, body: Action, session: WriteSession
) -> JobView | CancelledJobView:
    """Cancels a job; a running one saves a snapshot first.

    An administrator of the server cancels jobs of all projects, and gets the ID and the state alone
    of a job that it may not read.
    """
    return await jobs.cancel(session, principal, job_id, body.reason)


@router.post("/{job_id}:give-up", responses={409: {}})
async def give_up_results(
    job_id: str, principal: Controller, body: Action, session: WriteSession
) -> JobView:
    """Discards the results that a worker has not uploaded yet; the job then ends without them."""
    return await unstored_results.give_up(session, principal, job_id, body.reason)
