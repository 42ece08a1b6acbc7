"""Executes statements that are built once for many executions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from app.db.engine import Session

DIALECTS: Final[Mapping[str, Any]] = {
    "sqlite": sqlite.dialect(paramstyle="qmark"),
    "postgresql": postgresql.PGDialectAsync_psycopg(),  # type: ignore[no-untyped-call]
}
"""Dialects by name, for SQL that is handed to the driver."""


async def write_changes(session: Session) -> None:
    """Writes what was added or changed in a session, as its own queries do before they read."""
    if session.autoflush and (session.dirty or session.new or session.deleted):
        await session.flush()


async def fetch(session: Session, statement: Any, **values: Any) -> Sequence[Any]:
    """Executes a statement that was built once.

    Building it for each decision would cost more than the database takes to answer.
    """
    await write_changes(session)
    return (await (await session.connection()).execute(statement, values)).all()
