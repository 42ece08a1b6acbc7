"""What a person's own runs and jobs do now."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import jobs as job_rows
from app.db.repositories import overview as rows
from app.domain.principal import Principal
from app.services.queue.pool_queue import PoolQueue
from app.services.queue.queue_facts import MOST_PLACES
from app.services.views.jobs import build_job_views
from app.services.views.runs import run_views
from palestra.contract.overview import OverviewView, ProjectJobsView
from palestra.contract.resources import JobView
from palestra.contract.states import LIVE_JOB_STATES, JobState

_SHOWN: Final = 20
_FAILED_WITHIN: Final = timedelta(days=7)
_WAITING: Final = frozenset({JobState.QUEUED, JobState.LOST})
_PAUSED: Final = frozenset({JobState.PAUSED})


async def show(session: Session, principal: Principal) -> OverviewView:
    """Returns what the caller's own runs and jobs do, in the projects of the credential."""
    mine, me = principal.project_ids, principal.user_id
    since = await clock.now(session) - _FAILED_WITHIN
    running, running_total = await rows.list_running(session, mine, me, _SHOWN)
    failed, failed_total = await rows.list_failed(session, mine, me, since, _SHOWN)
    counts = await rows.count_jobs(session, mine, me)

    def count(states: frozenset[JobState], project_id: str | None = None) -> int:
        """Returns the number of own jobs, or that of all jobs of a project."""
        return sum(
            own if project_id is None else every
            for (project, state), (every, own) in counts.items()
            if state in states and project_id in {None, project}
        )

    return OverviewView(
        running=await run_views(session, running),
        running_total=running_total,
        failed=await run_views(session, failed),
        failed_total=failed_total,
        failed_since=since,
        waiting=count(_WAITING),
        paused=count(_PAUSED),
        next_job=await _find_next_job(session, principal) if count(_WAITING) else None,
        projects=[
            ProjectJobsView(
                project=one.slug,
                running=count(LIVE_JOB_STATES, one.project_id),
                waiting=count(_WAITING, one.project_id),
                paused=count(_PAUSED, one.project_id),
            )
            for one in sorted(principal.memberships, key=lambda one: one.slug)
        ],
    )


async def _find_next_job(session: Session, principal: Principal) -> JobView | None:
    """Returns the own waiting job with the lowest place in its pool's queue.

    Where none has a place, the one that has been queued longest.
    """
    mine, me = principal.project_ids, principal.user_id
    places: dict[str, int] = {}
    for pool in await rows.list_pools_of_waiting(session, mine, me):
        places |= await _find_first_place(session, pool, principal)
    job: JobRow | None
    if places:
        (job,) = await job_rows.list_by_ids(session, [min(places, key=lambda one: places[one])])
    else:
        job = await rows.find_oldest_queued(session, mine, me)
    if job is None:
        return None
    (view,) = await build_job_views(session, [job], known_places=places)
    return view


async def _find_first_place(session: Session, pool: str, principal: Principal) -> Mapping[str, int]:
    """Returns the place of the caller's first job in a pool's queue, by ID; empty without one."""
    ordered = await PoolQueue(session, pool).first_jobs(MOST_PLACES)
    for place, job in enumerate(ordered, start=1):
        if job.group.user_id == principal.user_id and job.group.project_id in principal.project_ids:
            return {job.id: place}
    return {}
