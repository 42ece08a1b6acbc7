"""Rows of workers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import Select, bindparam, func, select, update
from sqlalchemy.orm import defer
from sqlalchemy.orm.attributes import set_committed_value

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.workers import WorkerRow
from app.db.upsert import insert_new

_OF_REGISTRATION: Final = ("catalogue", "packages", "hardware", "gpus")
"""Columns with much JSON that are written by registrations alone."""
_MAX_KEPT: Final = 1_000
_registered: Final[dict[str, tuple[datetime, tuple[Any, ...]]]] = {}
"""Those columns by worker ID, with the time of the registration that wrote them."""


@dataclass(frozen=True, slots=True)
class WorkerQueue:
    """The Celery queue of a worker.

    Attributes:
        name: Name of the queue, which is its key in the broker.
        password_hash: SHA-256 of the password of the worker's user of the broker; `None` without
            such a user.
    """

    name: str
    password_hash: str | None


async def add(session: Session, row: dict[str, Any]) -> bool:
    """Adds a worker; returns false if another one has that name."""
    return (
        await session.execute(insert_new(session, WorkerRow, [row]).returning(WorkerRow.id))
    ).first() is not None


async def register_again(session: Session, worker: WorkerRow, row: dict[str, Any]) -> None:
    """Updates a worker's row from a new registration."""
    kept = {key: value for key, value in row.items() if key not in {"id", "name", "created_by"}}
    kept |= {"draining": False, "drain_reason": None, "failed_starts": 0}
    kept |= {"registered_at": db_now(), "last_heartbeat_at": db_now()}
    await session.execute(
        update(WorkerRow)
        .where(WorkerRow.id == worker.id)
        .values(**kept)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(worker)


async def lock_by_name(session: Session, name: str) -> WorkerRow | None:
    """Returns the worker of that name, locked until the transaction ends.

    `None` if it was replaced while this transaction waited for it.
    """
    query = (
        select(WorkerRow)
        .where(WorkerRow.name == name, WorkerRow.replaced_at.is_(None))
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query.with_for_update())).one_or_none()


async def forget_secret(session: Session, worker: WorkerRow) -> None:
    """Revokes a worker's secret, a pending new secret, and its password of the broker."""
    worker.secret_hash = worker.next_secret_hash = worker.rotation_nonce = None
    worker.broker_password_hash = None
    await session.flush()


async def replace(session: Session, worker: WorkerRow) -> None:
    """Frees the name of a forgotten worker, and excludes the worker from pools and lists."""
    await session.execute(
        update(WorkerRow)
        .where(WorkerRow.id == worker.id)
        .values(replaced_at=db_now(), pool="")
        .execution_options(synchronize_session=False)
    )


async def ask_for_rotation(session: Session, worker: WorkerRow, nonce: str) -> None:
    """Stores that a worker is to get a new secret, unless that is pending already."""
    if worker.rotation_nonce is None:
        worker.rotation_nonce = nonce
        await session.flush()


async def set_next_secret(session: Session, worker: WorkerRow, secret_hash: str) -> None:
    """Stores the hash of the secret that replaces a worker's present one."""
    if worker.next_secret_hash != secret_hash:
        worker.next_secret_hash = secret_hash
        await session.flush()


async def take_next_secret(session: Session, worker_id: str) -> None:
    """Replaces a worker's secret by the pending new one; the former secret becomes invalid."""
    statement = (
        update(WorkerRow)
        .where(WorkerRow.id == worker_id, WorkerRow.next_secret_hash.is_not(None))
        .values(
            secret_hash=WorkerRow.next_secret_hash,
            next_secret_hash=None,
            rotation_nonce=None,
            secret_since=db_now(),
        )
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def lock(session: Session, worker_id: str) -> None:
    """Locks a worker against changes of others until the transaction ends.

    Rows that refer to the worker can be added meanwhile.
    """
    query = select(WorkerRow.id).where(WorkerRow.id == worker_id)
    await session.execute(query.with_for_update(key_share=True))


async def find(session: Session, worker_id: str) -> WorkerRow | None:
    """Returns a worker."""
    query = select(WorkerRow).where(WorkerRow.id == worker_id)
    return await session.scalar(query.execution_options(populate_existing=True))


async def find_for_claim(session: Session, worker_id: str) -> WorkerRow | None:
    """Returns a worker, read again but for the columns that only a registration changes.

    These hold many kilobytes of JSON, which a claim would otherwise read and parse each time.
    """
    worker = await session.scalar(_select_for_claim(), {"worker_id": worker_id})
    if worker is None:
        return None
    at, values = _registered.get(worker.id, (None, ()))
    if at != worker.registered_at:
        query = select(*(getattr(WorkerRow, name) for name in _OF_REGISTRATION))
        values = tuple((await session.execute(query.where(WorkerRow.id == worker_id))).one())
        if len(_registered) >= _MAX_KEPT:
            _registered.clear()
        _registered[worker.id] = (worker.registered_at, values)
    for name, value in zip(_OF_REGISTRATION, values, strict=True):
        set_committed_value(worker, name, value)
    return worker


@cache
def _select_for_claim() -> Select[WorkerRow]:
    left_out = [defer(getattr(WorkerRow, name), raiseload=True) for name in _OF_REGISTRATION]
    query = select(WorkerRow).where(WorkerRow.id == bindparam("worker_id")).options(*left_out)
    return query.execution_options(populate_existing=True)


async def touch(session: Session, worker_id: str, clock_skew: float | None = None) -> None:
    """Stores the time of a heartbeat, and by how many seconds the worker's clock is ahead."""
    statement = (
        update(WorkerRow)
        .where(WorkerRow.id == worker_id)
        .values(last_heartbeat_at=db_now(), clock_skew_seconds=clock_skew)
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def set_draining(
    session: Session, worker: WorkerRow, *, draining: bool, reason: str | None = None
) -> None:
    """Sets or clears the draining flag of a worker, with the reason; forgets failed starts."""
    worker.draining = draining
    worker.drain_reason = reason
    worker.failed_starts = 0
    await session.flush()


async def count_failed_start(session: Session, worker_id: str) -> int:
    """Counts one more failed start of a worker; returns how many there are in a row."""
    statement = (
        update(WorkerRow)
        .where(WorkerRow.id == worker_id)
        .values(failed_starts=WorkerRow.failed_starts + 1)
        .returning(WorkerRow.failed_starts)
        .execution_options(synchronize_session=False)
    )
    return (await session.execute(statement)).scalar_one()


async def clear_failed_starts(session: Session, worker_id: str) -> None:
    """Sets the number of failed starts in a row of a worker to 0."""
    statement = (
        update(WorkerRow)
        .where(WorkerRow.id == worker_id, WorkerRow.failed_starts > 0)
        .values(failed_starts=0)
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def set_queue(session: Session, worker: WorkerRow, queue: WorkerQueue) -> None:
    """Stores the Celery queue that a worker has to listen to."""
    worker.queue, worker.broker_password_hash = queue.name, queue.password_hash
    await session.flush()


async def list_queues(session: Session) -> dict[str, WorkerQueue]:
    """Returns the queues of all workers by worker ID, those of forgotten workers included."""
    query = select(WorkerRow.id, WorkerRow.queue, WorkerRow.broker_password_hash)
    return {
        worker_id: WorkerQueue(name, password_hash)
        for worker_id, name, password_hash in await session.execute(query)
    }


async def measure_silence(session: Session, worker_ids: Collection[str]) -> dict[str, float]:
    """Returns for how many seconds workers were silent, by the database's clock."""
    query = select(WorkerRow.id, WorkerRow.last_heartbeat_at, db_now()).where(
        WorkerRow.id.in_(worker_ids)
    )
    return {
        worker_id: (present - last).total_seconds()
        for worker_id, last, present in await session.execute(query)
    }


async def list_for_pools(session: Session, pools: Collection[str] | None) -> Sequence[WorkerRow]:
    """Returns the workers of the given pools, or all workers, by name."""
    query = (
        select(WorkerRow)
        .where(WorkerRow.replaced_at.is_(None))
        .order_by(WorkerRow.name, WorkerRow.id)
    )
    if pools is not None:
        query = query.where(WorkerRow.pool.in_(pools))
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def list_alive_names(session: Session, pool: str) -> Sequence[str]:
    """Returns the names of a pool's workers with a recent heartbeat, draining workers included."""
    query = select(WorkerRow.name).where(
        WorkerRow.pool == pool, WorkerRow.last_heartbeat_at > db_now(-WorkerRow.silent_seconds)
    )
    return (await session.scalars(query.order_by(WorkerRow.name))).all()


async def move(session: Session, name: str, pool: str) -> None:
    """Moves a worker to another pool; it takes jobs of that pool once it registers again."""
    await session.execute(
        update(WorkerRow)
        .where(WorkerRow.name == name, WorkerRow.replaced_at.is_(None))
        .values(pool=pool)
        .execution_options(synchronize_session=False)
    )


async def list_for_pool(session: Session, pool: str) -> Sequence[WorkerRow]:
    """Returns all workers of a pool, ordered by registration, the latest last."""
    query = select(WorkerRow).where(WorkerRow.pool == pool)
    return (await session.scalars(query.order_by(WorkerRow.registered_at, WorkerRow.id))).all()


async def listens_for(session: Session, worker: WorkerRow, assigned_worker_id: str | None) -> bool:
    """Returns whether a worker is the assigned one, or listens to the same Celery queue.

    Workers that registered before each had a queue of its own share that of their pool.
    """
    if assigned_worker_id is None or assigned_worker_id == worker.id:
        return assigned_worker_id is not None
    query = select(WorkerRow.queue).where(WorkerRow.id == assigned_worker_id)
    return worker.queue == await session.scalar(query)


async def count_registered(session: Session, pools: Collection[str]) -> dict[str, int]:
    """Returns how many workers each of the given pools has, offline workers included."""
    query = (
        select(WorkerRow.pool, func.count())
        .where(WorkerRow.pool.in_(pools))
        .group_by(WorkerRow.pool)
    )
    return dict((await session.execute(query)).all())


async def load_names(session: Session, worker_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of workers, by ID."""
    rows = await session.execute(
        select(WorkerRow.id, WorkerRow.name).where(WorkerRow.id.in_(worker_ids))
    )
    return dict(rows.all())


async def list_by_ids(session: Session, worker_ids: Collection[str]) -> Sequence[WorkerRow]:
    """Returns workers by id."""
    return (await session.scalars(select(WorkerRow).where(WorkerRow.id.in_(worker_ids)))).all()
