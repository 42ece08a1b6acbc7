"""Deletes expired rows."""

from typing import Final

from sqlalchemy import CursorResult, Delete, delete, func, select

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.access import IdempotencyKeyRow, LoginLinkRow
from app.db.models.events import EventRow
from app.db.repositories import summaries

_BATCH: Final = 10_000
"""Rows deleted per call, so that other writers do not wait long."""


async def forget_answers(session: Session, seconds: float) -> int:
    """Deletes idempotency answers and login links that are older than `seconds`.

    Returns the number of rows.
    """
    answers = await _delete(
        session, delete(IdempotencyKeyRow).where(IdempotencyKeyRow.created_at < db_now(-seconds))
    )
    return answers + await _delete(
        session, delete(LoginLinkRow).where(LoginLinkRow.expires_at < db_now(-seconds))
    )


async def forget_events(session: Session, seconds: float) -> int:
    """Deletes the oldest events that are older than `seconds`, at most `_BATCH` at once.

    The newest event is kept, and those that the summariser has not considered, which would have to
    summarise every run otherwise. Returns the number of rows.
    """
    first = await session.scalar(select(func.min(EventRow.id)))
    last = await session.scalar(select(func.max(EventRow.id)))
    if first is None or last is None:
        return 0
    considered = await summaries.read_progress(session)
    end = min(first + _BATCH, last, considered + 1)
    old = (EventRow.id < end, EventRow.at < db_now(-seconds))
    return await _delete(session, delete(EventRow).where(*old))


async def _delete(session: Session, statement: Delete) -> int:
    result = await session.execute(statement.execution_options(synchronize_session=False))
    return result.rowcount if isinstance(result, CursorResult) else 0
