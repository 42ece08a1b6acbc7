"""The row that counts the uptime of the servers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select

from app.db.clock import db_now
from app.db.clock import now as database_now
from app.db.engine import Session
from app.db.models.uptime import ServerUptimeRow
from app.db.upsert import insert_new

_ROW: Final = 1


@dataclass(frozen=True, slots=True)
class Uptime:
    """The uptime counter, and the time of the database's clock at which the counter was read."""

    at: datetime
    seconds: float


async def read(session: Session) -> Uptime:
    """Returns the counter now."""
    seconds = await session.scalar(
        select(ServerUptimeRow.seconds).where(ServerUptimeRow.id == _ROW)
    )
    return Uptime(await database_now(session), seconds or 0.0)


async def count(session: Session, longest: float) -> None:
    """Adds the time since a server last counted, at most `longest` seconds.

    A longer gap is cut to `longest`, since no server was up during the rest.
    """
    await session.execute(
        insert_new(session, ServerUptimeRow, [{"id": _ROW, "seconds": 0.0, "counted_at": db_now()}])
    )
    query = (
        select(ServerUptimeRow)
        .where(ServerUptimeRow.id == _ROW)
        .execution_options(populate_existing=True)
    )
    row = (await session.scalars(query.with_for_update())).one()
    present = await database_now(session)
    row.seconds += min(max((present - row.counted_at).total_seconds(), 0.0), longest)
    row.counted_at = present
    await session.flush()
