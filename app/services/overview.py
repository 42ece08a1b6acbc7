"""What a person's own runs and jobs do now."""

from datetime import timedelta
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import jobs as job_rows
from app.db.repositories import overview as rows
from app.db.repositories import waiting_jobs
from app.db.repositories.waiting_jobs import WaitingFilter
from app.domain.principal import Principal
from app.services.queue import queue_facts
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
    pools = await rows.list_pools_of_waiting(session, mine, me)
    places = await queue_facts.find_places(session, set(pools))
    own: set[str] = set()
    for pool in pools:
        wanted = WaitingFilter(pool=pool, project_ids=mine, user_id=me)
        own |= await waiting_jobs.filter_ids(session, wanted, places)
    job: JobRow | None
    if own:
        first = min(own, key=lambda job_id: (places[job_id].number, job_id))
        (job,) = await job_rows.list_by_ids(session, [first])
    else:
        job = await rows.find_oldest_queued(session, mine, me)
    if job is None:
        return None
    (view,) = await build_job_views(session, [job], known_places=places)
    return view
