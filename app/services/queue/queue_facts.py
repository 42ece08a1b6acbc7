"""What the queues of pools look like from outside: workers, places and what jobs wait for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import (
    assignments,
    dependencies,
    job_queue,
    pool_windows,
    start_order,
)
from app.db.repositories import jobs as job_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import workers as worker_rows
from app.db.repositories.assignments import WorkerSlots
from app.domain.queue.holds import Hold, HoldReason, RunningJobs
from app.domain.queue.start_order import ExperimentKey, Group
from app.domain.queue.waiting import PoolFacts, WaitingJob
from app.domain.queue.windows import PlannedWindow, find_blocking
from app.services.queue import running_limits
from app.services.queue.pool_queue import PoolQueue
from palestra.contract.names import PriorityClass

MAX_PLACES: Final = 1_000
"""Places that are computed of each pool; jobs after them have none."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place of a queued job in its pool's queue."""

    number: int
    """From 1; assigned jobs, which start first, come before the others."""
    ahead: int
    """Number of jobs before it that are not assigned."""


async def find_places(session: Session, pools: Collection[str]) -> dict[str, QueuePlace]:
    """Returns the places of the assigned jobs and of the first other queued jobs of pools."""
    found: dict[str, QueuePlace] = {}
    for pool in sorted(pools):
        assigned = await list_assigned(session, pool)
        jobs = await PoolQueue(session, pool).first_jobs(MAX_PLACES)
        found |= {job_id: QueuePlace(number, 0) for number, job_id in enumerate(assigned, start=1)}
        found |= {job.id: QueuePlace(len(assigned) + n + 1, n) for n, job in enumerate(jobs)}
    return found


async def list_assigned(session: Session, pool: str) -> list[str]:
    """Returns the IDs of a pool's assigned jobs, which have the first places."""
    admitted = await pool_rows.list_admitted_pairs(session, {pool})
    return [
        job_id
        for job_id, project_id in await assignments.list_assigned(session, pool)
        if (pool, project_id) in admitted
    ]


async def read_waiting_jobs(
    session: Session, queued: Sequence[JobRow]
) -> dict[str, tuple[WaitingJob, PoolFacts]]:
    """Returns, by job ID, the facts that decide when queued jobs start, without the jobs ahead."""
    pools = {row.pool for row in queued}
    workers = await assignments.list_worker_slots(session, pools)
    facts = await _read_facts(session, pools, workers)
    admitted = await pool_rows.list_admitted_pairs(session, pools)
    delays = await job_rows.measure_seconds_until(
        session, {row.not_before for row in queued if row.not_before is not None}
    )
    assigned = await assignments.filter_assigned(session, [row.id for row in queued])
    idle = await job_queue.filter_idle_evaluations(
        session, [row.id for row in queued if row.schedule.follows_training]
    )
    interactive = await assignments.list_interactive_users(
        session,
        {row.pool for row in queued if row.priority_class == PriorityClass.INTERACTIVE},
    )
    now = await clock.now(session)
    holds = await _find_holds(session, queued, now)
    dependent = [row.id for row in queued if row.open_dependencies]
    before = await dependencies.list_for_jobs(session, dependent)
    windows = await pool_windows.list_planned(session, pools)
    found = {}
    for row in queued:
        fitting = [one for one in workers if _could_take(one, row)]
        job = WaitingJob(
            gpus=row.gpus,
            version=row.work_order_version,
            slots=sum(one.slots for one in fitting),
            free_slots=sum(one.free_slots for one in fitting),
            delay_seconds=delays[row.not_before] if row.not_before is not None else 0.0,
            is_admitted=(row.pool, row.project_id) in admitted,
            is_idle_evaluation=row.id in idle,
            is_assigned=row.id in assigned,
            has_other_interactive=row.priority_class == PriorityClass.INTERACTIVE
            and (row.pool, row.created_by) in interactive,
            waits_for=tuple(one.after_id for one in before.get(row.id, ()) if one.is_open),
            needs_success=all(
                one.condition == dependencies.SUCCESS for one in before.get(row.id, ())
            ),
            hold=holds[row.id] or _find_hold_by_time(fitting, row, now),
            window=_find_window(windows, fitting, row),
        )
        found[row.id] = job, facts[row.pool]
    return found


def _find_hold_by_time(fitting: Sequence[WorkerSlots], row: JobRow, now: datetime) -> Hold | None:
    """Returns the hold of a job that no worker is free long enough for."""
    if all(worker.free_until is None for worker in fitting):
        return None
    job = start_order.to_queued_job(row)
    if any(worker.is_free_for(job, now) for worker in fitting):
        return None
    return Hold(HoldReason.NOT_FREE_LONG_ENOUGH)


def _find_window(
    windows: Sequence[PlannedWindow], fitting: Sequence[WorkerSlots], row: JobRow
) -> PlannedWindow | None:
    """Returns the first window that is not for a job and takes a worker that could take the job."""
    taken = [
        window
        for window in windows
        if window.pool == row.pool and any(window.covers(one.worker_id) for one in fitting)
    ]
    return find_blocking(taken, row.project_id, row.created_by)


async def _find_holds(
    session: Session, queued: Sequence[JobRow], now: datetime
) -> dict[str, Hold | None]:
    """Returns, by job ID, which limit on running jobs holds some queued jobs now."""
    found: dict[str, Hold | None] = {}
    for pool in {row.pool for row in queued}:
        waiting = [row for row in queued if row.pool == pool]
        groups = {
            row.id: Group(row.priority_class, row.project_id, row.created_by) for row in waiting
        }
        keys = {row.id: ExperimentKey(row.project_id, row.experiment_id) for row in waiting}
        accounts = {group.account for group in groups.values()}
        of_pool = await running_limits.read_pool(session, pool, now, accounts)
        await of_pool.add_experiments(session, list(keys.values()))
        running = RunningJobs(of_pool.limits, frozenset())
        found |= {
            job_id: running.find_hold(group, keys[job_id]) for job_id, group in groups.items()
        }
    return found


def _could_take(worker: WorkerSlots, job: JobRow) -> bool:
    return (
        worker.pool == job.pool
        and worker.gpus >= job.gpus
        and job.work_order_version in worker.versions
    )


async def pool_facts(session: Session, pools: Collection[str]) -> dict[str, PoolFacts]:
    """Returns the workers, slots and settings that the given pools offer now."""
    workers = await assignments.list_worker_slots(session, pools)
    return await _read_facts(session, pools, workers)


async def _read_facts(
    session: Session, pools: Collection[str], slots: Sequence[WorkerSlots]
) -> dict[str, PoolFacts]:
    registered = await worker_rows.count_registered(session, pools)
    paused = {
        pool.name: pool.pause_reason
        for pool in await pool_rows.list_by_names(session, pools)
        if pool.paused_at is not None
    }
    facts = {}
    for pool in pools:
        workers = [one for one in slots if one.pool == pool]
        facts[pool] = PoolFacts(
            name=pool,
            paused=paused.get(pool),
            registered=registered.get(pool, 0),
            workers=len(workers),
            slots=sum(one.slots for one in workers),
            free_slots=sum(one.free_slots for one in workers),
            most_gpus=max((one.gpus for one in workers), default=0),
            versions=frozenset().union(*(one.versions for one in workers)),
        )
    return facts
