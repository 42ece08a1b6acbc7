"""Appends to the event log and reads it after a cursor.

Rows wait in the session and are inserted as the last act of its transaction. On PostgreSQL one
advisory lock is held from that insert until the commit is visible, so ids rise in the order of
visibility: who has seen id N has seen, or will never see, every id below N
(`docs/decisions/0001-event-order.md`). SQLite has one writer and needs no lock.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import event, func, insert, or_, select
from sqlalchemy.orm import Session as SyncSession
from sqlalchemy.orm import SessionTransaction

from app.db.engine import EVENTS, Session, announce
from app.db.models.events import EventRow

_PENDING: Final = "palestra_pending_events"
_MARKS: Final = "palestra_event_marks"
_APPEND_LOCK: Final = 0x70616C_6576
"""Key of the advisory lock that orders appends."""


def append(session: Session, row: dict[str, Any]) -> None:
    """Keeps `row` (columns of `EventRow` without id and time) until the session commits."""
    session.info.setdefault(_PENDING, []).append(row)
    announce(session, EVENTS)


async def after(session: Session, cursor: int, *, limit: int) -> Sequence[EventRow]:
    """Returns the rows of all projects after `cursor`, oldest first."""
    return (
        await session.scalars(
            select(EventRow).where(EventRow.id > cursor).order_by(EventRow.id).limit(limit)
        )
    ).all()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which rows of the log to read; empty collections take every run and experiment."""

    project_id: str
    runs: Collection[str] = ()
    experiments: Collection[str] = ()


async def between(
    session: Session, cursor: int, last: int, wanted: EventFilter, *, limit: int
) -> Sequence[EventRow]:
    """Returns the rows after `cursor` up to `last` that the filter takes, oldest first."""
    query = select(EventRow).where(EventRow.id > cursor, EventRow.id <= last)
    query = query.where(
        or_(EventRow.project_id == wanted.project_id, EventRow.project_id.is_(None))
    )
    if wanted.runs:
        query = query.where(EventRow.run_id.in_(wanted.runs))
    if wanted.experiments:
        query = query.where(EventRow.experiment_id.in_(wanted.experiments))
    return (await session.scalars(query.order_by(EventRow.id).limit(limit))).all()


async def bounds(session: Session) -> tuple[int, int]:
    """Returns the ids of the oldest and the newest row; (0, 0) for an empty log."""
    first, last = (
        await session.execute(select(func.min(EventRow.id), func.max(EventRow.id)))
    ).one()
    return first or 0, last or 0


async def newest(session: Session) -> int:
    """Returns the id of the newest row; 0 for an empty log."""
    return (await session.scalar(select(func.max(EventRow.id)))) or 0


@event.listens_for(SyncSession, "before_commit")
def _insert_pending(session: SyncSession) -> None:
    if session.in_nested_transaction() or not session.info.get(_PENDING):
        return
    session.flush()
    rows = session.info.pop(_PENDING)
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_APPEND_LOCK)))
    session.execute(insert(EventRow), rows)


@event.listens_for(SyncSession, "after_transaction_create")
def _mark_savepoint(session: SyncSession, transaction: SessionTransaction) -> None:
    if transaction.nested:
        session.info.setdefault(_MARKS, {})[transaction] = len(session.info.get(_PENDING, ()))


@event.listens_for(SyncSession, "after_soft_rollback")
def _forget_rolled_back(session: SyncSession, transaction: SessionTransaction) -> None:
    kept = session.info.get(_MARKS, {}).pop(transaction, 0) if transaction.nested else 0
    del session.info.get(_PENDING, [])[kept:]
