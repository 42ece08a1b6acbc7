"""Appends to the event log and reads it after a cursor.

Rows are inserted as the last act of a transaction (`app.db.repositories.pending_rows`), so ids rise
in the order of visibility: who has seen id N has seen, or will never see, every id below N
(`docs/decisions/0001-event-order.md`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import Select, Table, func, insert, or_, select
from sqlalchemy.orm import Session as SyncSession

from app.db import prepared
from app.db.engine import EVENTS, Session, announce
from app.db.models.events import EventRow
from app.db.prepared import Write
from app.db.repositories import pending_rows

_LOG: Final = "events"
_INSERT: Final = insert(cast("Table", EventRow.__table__))
"""Built once: an insert of the mapped class takes longer at every commit."""


def append(session: Session, row: dict[str, Any]) -> None:
    """Keeps `row` (columns of `EventRow` without id and time) until the session commits."""
    pending_rows.append(session, _LOG, row)
    announce(session, EVENTS)


async def list_after(session: Session, cursor: int, *, limit: int) -> Sequence[EventRow]:
    """Returns the rows of all projects after `cursor`, oldest first."""
    return (
        await session.scalars(
            select(EventRow).where(EventRow.id > cursor).order_by(EventRow.id).limit(limit)
        )
    ).all()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Filter of the rows to read; empty collections take every run and experiment."""

    project_ids: Collection[str]
    runs: Collection[str] = ()
    experiments: Collection[str] = ()
    types: Collection[str] = ()


async def count_between(
    session: Session, cursor: int, last: int, wanted: EventFilter, *, most: int
) -> int:
    """Returns how many rows `list_between` would return, counting at most `most`."""
    some = _choose_between(cursor, last, wanted).with_only_columns(EventRow.id).limit(most)
    return (await session.scalar(select(func.count()).select_from(some.subquery()))) or 0


async def list_between(
    session: Session, cursor: int, last: int, wanted: EventFilter, *, limit: int
) -> Sequence[EventRow]:
    """Returns the rows after `cursor` up to `last` that the filter takes, oldest first."""
    query = _choose_between(cursor, last, wanted)
    return (await session.scalars(query.order_by(EventRow.id).limit(limit))).all()


def _choose_between(cursor: int, last: int, wanted: EventFilter) -> Select[EventRow]:
    query = select(EventRow).where(EventRow.id > cursor, EventRow.id <= last)
    query = query.where(
        or_(EventRow.project_id.in_(wanted.project_ids), EventRow.project_id.is_(None))
    )
    if wanted.runs:
        query = query.where(EventRow.run_id.in_(wanted.runs))
    if wanted.experiments:
        query = query.where(EventRow.experiment_id.in_(wanted.experiments))
    if wanted.types:
        query = query.where(EventRow.type.in_(wanted.types))
    return query


async def read_bounds(session: Session) -> tuple[int, int]:
    """Returns the ids of the oldest and the newest row; (0, 0) for an empty log."""
    first, last = (
        await session.execute(select(func.min(EventRow.id), func.max(EventRow.id)))
    ).one()
    return first or 0, last or 0


async def read_newest_id(session: Session) -> int:
    """Returns the id of the newest row; 0 for an empty log."""
    return (await session.scalar(select(func.max(EventRow.id)))) or 0


def _insert(session: SyncSession, rows: list[dict[str, Any]]) -> None:
    prepared.write_on(session.connection(), [Write(_INSERT, rows)])


pending_rows.register(_LOG, _insert)
