"""Rows of workers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import AttemptRow
from app.db.models.workers import WorkerRow
from app.db.repositories.attempts import LIVE
from app.db.upsert import insert_new


@dataclass(frozen=True, slots=True)
class Offer:
    """The slots of a worker that is online and not draining, and the number in use."""

    pool: str
    project_id: str
    slots: int
    live: int
    gpus: int
    versions: frozenset[int]


async def add(session: Session, row: dict[str, Any]) -> bool:
    """Adds a worker; returns false if the project has one of that name."""
    return (
        await session.execute(insert_new(session, WorkerRow, [row]).returning(WorkerRow.id))
    ).first() is not None


async def register_again(session: Session, worker: WorkerRow, row: dict[str, Any]) -> None:
    """Updates a worker's row from a new registration."""
    kept = {
        key: value
        for key, value in row.items()
        if key not in {"id", "project_id", "name", "created_by"}
    }
    kept |= {"draining": False, "registered_at": db_now(), "last_heartbeat_at": db_now()}
    await session.execute(
        update(WorkerRow)
        .where(WorkerRow.id == worker.id)
        .values(**kept)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(worker)


async def named(session: Session, project_id: str, name: str) -> WorkerRow:
    """Returns the project's worker of that name, locked until the transaction ends."""
    query = (
        select(WorkerRow)
        .where(WorkerRow.project_id == project_id, WorkerRow.name == name)
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query.with_for_update())).one()


async def forget_secret(session: Session, worker: WorkerRow) -> None:
    """Revokes a worker's own secret."""
    worker.secret_hash = None
    await session.flush()


async def get(session: Session, project_ids: Collection[str], worker_id: str) -> WorkerRow | None:
    """Returns a worker of one of some projects."""
    query = (
        select(WorkerRow)
        .where(WorkerRow.project_id.in_(project_ids), WorkerRow.id == worker_id)
        .execution_options(populate_existing=True)
    )
    return await session.scalar(query)


async def touch(session: Session, worker_id: str) -> None:
    """Stores the time of a heartbeat."""
    statement = (
        update(WorkerRow).where(WorkerRow.id == worker_id).values(last_heartbeat_at=db_now())
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def set_draining(session: Session, worker: WorkerRow, *, draining: bool) -> None:
    """Sets or clears the draining flag of a worker."""
    worker.draining = draining
    await session.flush()


async def silence(session: Session, worker_ids: Collection[str]) -> dict[str, float]:
    """Returns for how many seconds workers were silent, by the database's clock."""
    query = select(WorkerRow.id, WorkerRow.last_heartbeat_at, db_now()).where(
        WorkerRow.id.in_(worker_ids)
    )
    return {
        worker_id: (present - last).total_seconds()
        for worker_id, last, present in await session.execute(query)
    }


async def all_of(session: Session, project_ids: Collection[str]) -> Sequence[WorkerRow]:
    """Returns the workers of some projects by name."""
    query = select(WorkerRow).where(WorkerRow.project_id.in_(project_ids))
    return (await session.scalars(query.order_by(WorkerRow.name, WorkerRow.id))).all()


async def of_pool(session: Session, project_ids: Collection[str], pool: str) -> Sequence[WorkerRow]:
    """Returns all workers of a pool, ordered by registration, the latest last."""
    mine = WorkerRow.project_id.in_(project_ids), WorkerRow.pool == pool
    query = select(WorkerRow).where(*mine)
    return (await session.scalars(query.order_by(WorkerRow.registered_at, WorkerRow.id))).all()


async def offers(session: Session, pools: Collection[str] | None = None) -> Sequence[Offer]:
    """Returns the offers of the workers that are online and not draining."""
    live = (
        select(func.count())
        .select_from(AttemptRow)
        .where(AttemptRow.worker_id == WorkerRow.id, AttemptRow.state.in_(LIVE))
        .scalar_subquery()
    )
    query = select(
        WorkerRow.pool,
        WorkerRow.project_id,
        WorkerRow.slots,
        live,
        WorkerRow.gpu_count,
        WorkerRow.work_order_versions,
    )
    query = query.where(
        WorkerRow.draining.is_(False),
        WorkerRow.last_heartbeat_at > db_now(-WorkerRow.silent_seconds),
    )
    if pools is not None:
        query = query.where(WorkerRow.pool.in_(pools))
    rows = await session.execute(query)
    return [
        Offer(pool, owner, slots, busy, gpus, frozenset(versions))
        for pool, owner, slots, busy, gpus, versions in rows
    ]


async def registered(session: Session, project_ids: Collection[str]) -> dict[str, int]:
    """Returns how many workers each pool of some projects has ever had."""
    query = (
        select(WorkerRow.pool, func.count())
        .where(WorkerRow.project_id.in_(project_ids))
        .group_by(WorkerRow.pool)
    )
    return dict((await session.execute(query)).all())


async def names(session: Session, worker_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of workers."""
    rows = await session.execute(
        select(WorkerRow.id, WorkerRow.name).where(WorkerRow.id.in_(worker_ids))
    )
    return dict(rows.all())


async def by_ids(session: Session, worker_ids: Collection[str]) -> Sequence[WorkerRow]:
    """Returns workers by id."""
    return (await session.scalars(select(WorkerRow).where(WorkerRow.id.in_(worker_ids)))).all()
