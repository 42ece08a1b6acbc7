"""Assignments of queued jobs to workers, and the slots that they leave free."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Text, bindparam, cast, func, literal_column, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import job_queue, pool_windows
from app.domain.queue.decision import Assignment
from app.domain.queue.placement import WorkerOffer
from app.domain.queue.windows import FreeTime, PlannedWindow, find_free_time
from palestra.contract.names import PriorityClass
from palestra.contract.states import LIVE_ATTEMPT_STATES

_LIVE_ATTEMPTS: Final[list[ColumnElement[Any]]] = [
    literal_column(f"'{state}'") for state in LIVE_ATTEMPT_STATES
]
"""Literals, as in the condition of the partial index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSlots(WorkerOffer):
    """The slots and offers of a worker, with the columns that a decision does not depend on."""

    pool: str
    registered_at: datetime
    """Changes when its catalogue may have changed."""
    slots: int


async def list_worker_slots(
    session: Session, pools: Collection[str], *, has_windows: bool = True
) -> list[WorkerSlots]:
    """Returns the workers of the given pools that are online and not draining.

    Each with until when windows leave it free; `has_windows` is false if there are known to be
    none.
    """
    windows = await pool_windows.list_planned(session, pools) if has_windows else []
    workers = [
        WorkerSlots(
            worker_id=row.id,
            pool=row.pool,
            registered_at=row.registered_at,
            slots=row.slots,
            free_slots=max(0, row.slots - row.busy),
            gpus=row.gpu_count,
            versions=_read_versions(row.versions),
            takes_several_slots=row.takes_several_slots,
        )
        for row in await session.execute(_select_worker_slots(), {"pools": list(pools)})
    ]
    return [_limit_in_time(worker, windows) for worker in workers] if windows else workers


def _limit_in_time(worker: WorkerSlots, windows: Sequence[PlannedWindow]) -> WorkerSlots:
    free = find_free_time(worker.worker_id, [one for one in windows if one.pool == worker.pool])
    if free == FreeTime():
        return worker
    return replace(
        worker,
        free_until=free.free_until,
        free_until_by_project=free.free_until_by_project,
        free_until_by_user=free.free_until_by_user,
    )


@cache
def _read_versions(text: str) -> frozenset[int]:
    """Returns stored work order versions; most workers have the same ones."""
    return frozenset(json.loads(text))


@cache
def _select_worker_slots() -> Any:
    live = (
        select(func.coalesce(func.sum(AttemptRow.slot_count), 0))
        .select_from(AttemptRow)
        .where(AttemptRow.worker_id == WorkerRow.id, AttemptRow.state.in_(_LIVE_ATTEMPTS))
        .scalar_subquery()
    )
    assigned = (
        select(func.coalesce(func.sum(JobRow.assigned_slots), 0))
        .select_from(JobRow)
        .where(
            JobRow.assigned_worker_id == WorkerRow.id,
            job_queue.is_assigned(),
        )
        .scalar_subquery()
    )
    return select(
        WorkerRow.id,
        WorkerRow.pool,
        WorkerRow.registered_at,
        WorkerRow.slots,
        WorkerRow.takes_several_slots,
        (live + assigned).label("busy"),
        WorkerRow.gpu_count,
        cast(WorkerRow.work_order_versions, Text).label("versions"),
    ).where(
        WorkerRow.pool.in_(bindparam("pools", expanding=True)),
        WorkerRow.draining.is_(False),
        WorkerRow.last_heartbeat_at > db_now(-WorkerRow.silent_seconds),
    )


async def assign(
    session: Session,
    chosen: Sequence[Assignment],
    seconds: float,
    charged_weight: float,
) -> None:
    """Assigns jobs to workers for `seconds`; skips jobs that have changed since they were read."""
    statement = (
        update(JobRow)
        .where(
            JobRow.id == bindparam("job"),
            JobRow.attempt == bindparam("number"),
            job_queue.is_unassigned(),
        )
        .values(
            assigned_worker_id=bindparam("worker"),
            assigned_until=db_now(seconds),
            assigned_slots=bindparam("slots"),
            charged_weight=charged_weight,
        )
    )
    rows = [
        {
            "job": one.job.id,
            "number": one.job.attempt,
            "worker": one.worker_id,
            "slots": one.slots,
        }
        for one in chosen
    ]
    connection = await session.connection()
    await connection.execute(statement, rows)


async def list_unclaimed(session: Session) -> list[str]:
    """Returns the IDs of queued jobs that are assigned to a worker, of all pools."""
    return list(await session.scalars(select(JobRow.id).where(job_queue.is_assigned())))


async def filter_assigned(session: Session, job_ids: Collection[str]) -> set[str]:
    """Returns which queued jobs are assigned to a worker."""
    query = select(JobRow.id).where(JobRow.id.in_(job_ids), job_queue.is_assigned())
    return set(await session.scalars(query))


async def list_assigned(session: Session, pool: str) -> Sequence[tuple[str, str]]:
    """Returns ID and project ID of the assigned jobs of a pool, the first assigned first."""
    query = select(JobRow.id, JobRow.project_id).where(JobRow.pool == pool, job_queue.is_assigned())
    rows = await session.execute(query.order_by(JobRow.assigned_until, JobRow.id))
    return [(job_id, project_id) for job_id, project_id in rows]


async def list_interactive_users(session: Session, pools: Collection[str]) -> set[tuple[str, str]]:
    """Returns (pool, user ID) of each user with an assigned or live interactive job."""
    if not pools:
        return set()
    query = select(JobRow.pool, JobRow.created_by).where(
        JobRow.pool.in_(pools),
        JobRow.priority_class == PriorityClass.INTERACTIVE,
        job_queue.holds_devices(),
    )
    return {(pool, user_id) for pool, user_id in await session.execute(query)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentTarget:
    """The worker that a queued job is assigned to."""

    worker_id: str
    queue: str
    """The worker's Celery queue."""
    attempt: int
    """Number of the attempt that its claim creates."""
    slots: int
    """Slots of the worker that it takes."""


async def load_targets(
    session: Session, job_ids: Collection[str]
) -> Mapping[str, AssignmentTarget]:
    """Returns the worker of each assigned job."""
    query = (
        select(
            JobRow.id,
            WorkerRow.id.label("worker_id"),
            WorkerRow.queue,
            (JobRow.attempt + 1).label("number"),
            JobRow.assigned_slots,
        )
        .join(WorkerRow, WorkerRow.id == JobRow.assigned_worker_id)
        .where(JobRow.id.in_(job_ids), job_queue.is_queued())
    )
    return {
        row.id: AssignmentTarget(
            worker_id=row.worker_id,
            queue=row.queue,
            attempt=row.number,
            slots=row.assigned_slots,
        )
        for row in await session.execute(query)
    }


async def unassign(session: Session, job_ids: Collection[str]) -> None:
    """Ends the assignments of queued jobs."""
    await session.execute(
        update(JobRow)
        .where(JobRow.id.in_(job_ids), job_queue.is_queued())
        .values(assigned_worker_id=None, assigned_until=None, charged_weight=None)
        .execution_options(synchronize_session=False)
    )
