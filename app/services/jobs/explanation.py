"""Explains why a queued job has not started: reason, place and the terms that decide it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import jobs as job_rows
from app.db.repositories import workers as worker_rows
from app.domain.principal import Principal
from app.domain.queue.decision import Ahead
from app.domain.queue.waiting import KeptSlots, WaitingJob
from app.domain.queue.waiting import explain as explain_waiting
from app.services.jobs import jobs
from app.services.queue import queue_facts, start_estimates
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from palestra.contract.permissions import Permission
from palestra.contract.queue import JobExplanation
from palestra.contract.states import JobState

_MAX_NAMED: Final = 100
"""Jobs ahead that are named."""


async def explain(session: Session, principal: Principal, job_id: str) -> JobExplanation:
    """Explains why a job has not started.

    Jobs of projects that the caller may not read are counted, not named.

    Raises:
        NotFoundError: If none of the caller's projects has a job of that ID.
    """
    job = await jobs.find(session, principal, job_id)
    if job.state != JobState.QUEUED:
        return JobExplanation(
            job_id=job.id,
            state=job.state,
            reason=None,
            sentence=f"The job does not wait in the queue: it is {job.state}.",
            terms=None,
            ahead=0,
            ahead_is_cut=False,
            own_ahead=(),
        )
    return await _explain_queued(session, principal, job)


async def _explain_queued(session: Session, principal: Principal, job: JobRow) -> JobExplanation:
    queue = PoolQueue(session, job.pool, EquippedWorkers())
    place = await queue.find_place(job.id, queue_facts.MAX_PLACES)
    waiting, facts = (await queue_facts.read_waiting_jobs(session, [job]))[job.id]
    # Nothing starts before a job that a worker was asked to start.
    ahead = Ahead(jobs=(), is_cut=False) if place is None or waiting.is_assigned else place.ahead
    readable = principal.projects_with(Permission.PROJECT_READ)
    if place is not None:
        waiting = replace(
            waiting,
            slots=place.slots,
            free_slots=place.free_slots,
            ahead=len(ahead.jobs),
            ahead_is_cut=ahead.is_cut,
            hold=ahead.hold,
        )
        if ahead.hold is None and not waiting.is_assigned:
            waiting = await _add_reservation(session, queue, job, waiting, readable)
    found = explain_waiting(waiting, facts)
    named = [one.id for one in ahead.jobs if one.group.project_id in readable]
    return JobExplanation(
        job_id=job.id,
        state=job.state,
        reason=found.reason,
        sentence=found.sentence,
        terms=None if place is None else place.terms,
        ahead=len(ahead.jobs),
        ahead_is_cut=ahead.is_cut,
        own_ahead=tuple(named[:_MAX_NAMED]),
        estimate=(await start_estimates.load_estimates(session, [job]))[job.id],
        accuracy=await start_estimates.load_accuracy(session, job.pool),
    )


async def _add_reservation(
    session: Session,
    queue: PoolQueue,
    job: JobRow,
    waiting: WaitingJob,
    readable: Collection[str],
) -> WaitingJob:
    """Adds the slots that are kept for a job, or for another one while it could use them."""
    hold = await queue.find_reservation(job.id)
    if hold is None or hold.worker_id is None or hold.job_id is None:
        return waiting
    names = await worker_rows.load_names(session, [hold.worker_id])
    holder = await job_rows.find_by_id(session, hold.job_id)
    is_readable = holder is not None and holder.project_id in readable
    kept = KeptSlots(
        worker=names[hold.worker_id],
        start=hold.start,
        job_id=hold.job_id if is_readable else None,
    )
    return replace(waiting, hold=hold, kept=kept)
