"""Removes what a job waits for according to its explanation, in a transaction that is undone."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.db.clock import now
from app.db.engine import Database, Session
from app.db.models import AttemptRow, JobRow, PoolRow, UsageAccountRow, WorkerRow
from app.db.upsert import insert_or_add
from app.domain.principal import Principal
from app.domain.queue import decision, usage
from app.services.jobs import explanation
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from app.services.queue.queue_facts import MAX_PLACES
from palestra.contract.names import PriorityClass
from palestra.contract.queue import WaitReason

LAST: Final = {WaitReason.BEHIND_JOBS, WaitReason.SLOTS_BUSY, WaitReason.STARTS_NOW}
"""Reasons after whose removal the job has to start; another reason may hide one of these."""
_LIVE: Final = ("starting", "running")
_MAX_STEPS: Final = 4


async def remove_blockers(
    database: Database, caller: Principal, job_id: str
) -> tuple[list[WaitReason], bool]:
    """Removes the stated blocker of a waiting job until the next decision starts it.

    Returns:
        The reasons that were stated, one after the other, and whether the job started.
    """
    writing = database.engine.execution_options(palestra_writes=True)
    async with AsyncSession(writing, expire_on_commit=False) as session:
        reasons: list[WaitReason] = []
        for _ in range(_MAX_STEPS):
            found = await explanation.explain(session, caller, job_id)
            assert found.reason is not None
            reasons.append(found.reason)
            job = await session.get_one(JobRow, job_id, populate_existing=True)
            await _remove(session, job, found.reason, found.ahead)
            made = await PoolQueue(session, job.pool, EquippedWorkers()).decide()
            if job_id in {one.job.id for one in made.decision.assignments}:
                return reasons, True
            if found.reason in LAST:
                break
        return reasons, False


async def _remove(session: Session, job: JobRow, reason: WaitReason, ahead: int) -> None:
    match reason:
        case WaitReason.BEHIND_JOBS | WaitReason.SLOTS_BUSY | WaitReason.STARTS_NOW:
            await _finish_jobs_ahead(session, job, ahead)
            await _free_slot(session, job)
        case WaitReason.RESERVED:
            await _cancel_reserving_job(session, job)
        case WaitReason.INTERACTIVE_LIMIT:
            others = (
                JobRow.created_by == job.created_by,
                JobRow.priority_class == PriorityClass.INTERACTIVE.value,
            )
            await _end_live(session, *others)
        case WaitReason.TOO_MANY_GPUS | WaitReason.NO_FITTING_WORKER:
            await session.execute(update(WorkerRow).values(gpu_count=job.gpus))
        case WaitReason.DELAYED:
            await session.execute(update(JobRow).where(JobRow.id == job.id).values(not_before=None))
        case WaitReason.POOL_PAUSED:
            await session.execute(
                update(PoolRow).where(PoolRow.name == job.pool).values(paused_at=None)
            )
        case _:
            raise AssertionError(f"no rule to remove {reason}")
    await session.flush()


async def _finish_jobs_ahead(session: Session, job: JobRow, number: int) -> None:
    """Ends the jobs ahead, with what starting them charges their accounts."""
    place = await PoolQueue(session, job.pool, EquippedWorkers()).find_place(job.id, MAX_PLACES)
    assert place is not None
    jobs = place.ahead.jobs
    assert len(jobs) == number
    for one in jobs:
        charged = usage.quantum(one.devices, await now(session))
        await _charge(session, job.pool, one.group.project_id, one.group.user_id, charged)
    await _set_succeeded(session, [one.id for one in jobs])


async def _cancel_reserving_job(session: Session, job: JobRow) -> None:
    """Takes the job for which free slots are kept out of the queue; it charges nobody."""
    hold = await PoolQueue(session, job.pool, EquippedWorkers()).find_reservation(job.id)
    assert hold is not None
    assert hold.job_id is not None
    assert hold.job_id != job.id
    await _set_succeeded(session, [hold.job_id])


async def _free_slot(session: Session, job: JobRow) -> None:
    """Frees as many slots of a worker as the job needs, unless they are free; usage stays."""
    queue = PoolQueue(session, job.pool, EquippedWorkers())
    state, _ = await queue.read_first_jobs(MAX_PLACES)
    own = next(one for heads in state.heads.values() for one in heads.jobs if one.id == job.id)
    usable = decision.list_candidates(state, own)
    missing = {
        worker.worker_id: worker.count_slots(own.gpus) - worker.free_slots
        for worker in state.workers
        if worker.worker_id in usable
    }
    worker_id = min(missing, key=lambda one: (missing[one], one))
    live = (AttemptRow.worker_id == worker_id, AttemptRow.state.in_(_LIVE))
    attempts = (await session.scalars(select(AttemptRow).where(*live))).all()
    freed = 0
    for attempt in attempts:
        if freed >= missing[worker_id]:
            return
        freed += attempt.slot_count
        await session.execute(
            update(AttemptRow).where(AttemptRow.id == attempt.id).values(state="ended")
        )


async def _end_live(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Ends live jobs, and books what they used."""
    rows = (await session.scalars(select(JobRow).where(*conditions, JobRow.state.in_(_LIVE)))).all()
    weight = usage.weight(await now(session))
    for row in rows:
        used = max(1, row.gpus) * (weight - (row.charged_weight or weight))
        charged = used * usage.SECONDS_PER_WEIGHT
        await _charge(session, row.pool, row.project_id, row.created_by, charged)
    ids = [row.id for row in rows]
    await _set_succeeded(session, ids)
    await session.execute(
        update(AttemptRow)
        .where(AttemptRow.job_id.in_(ids))
        .values(state="ended")
        .execution_options(synchronize_session=False)
    )


async def _charge(
    session: Session, pool: str, project_id: str, user_id: str, weighted_seconds: float
) -> None:
    account = {
        "pool": pool,
        "project_id": project_id,
        "user_id": user_id,
        "weighted_seconds": weighted_seconds,
    }
    await session.execute(insert_or_add(session, UsageAccountRow, account, "weighted_seconds"))


async def _set_succeeded(session: Session, job_ids: Sequence[str]) -> None:
    await session.execute(
        update(JobRow)
        .where(JobRow.id.in_(job_ids))
        .values(state="succeeded", charged_weight=None)
        .execution_options(synchronize_session=False)
    )
