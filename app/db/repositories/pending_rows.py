"""Rows of append-only logs, which wait in the session and are inserted as its last act.

On PostgreSQL one advisory lock is held from these inserts until the commit is visible, so the rows
of every log are in the order in which their transactions become visible
(`docs/decisions/0001-event-order.md`). SQLite has one writer and needs no lock.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import event, select
from sqlalchemy.orm import Session as SyncSession
from sqlalchemy.orm import SessionTransaction

from app.db.clock import SKEW, db_now
from app.db.engine import Session

Row = dict[str, Any]
Insert = Callable[[SyncSession, list[Row]], None]
"""Inserts the rows of a log."""

_PENDING: Final = "palestra_pending_rows"
_MARKS: Final = "palestra_pending_marks"
_APPEND_LOCK: Final = 0x70616C_6576
"""Key of the advisory lock that orders appends."""
_LOCK: Final = f"SELECT pg_advisory_xact_lock({_APPEND_LOCK})"

_inserts: Final[dict[str, Insert]] = {}


def register(log: str, insert: Insert) -> None:
    """Registers the function that inserts the rows of a log."""
    _inserts[log] = insert


def append(session: Session, log: str, row: Row) -> None:
    """Keeps a row of `log` until the session commits; a rollback or its savepoint's discards it."""
    session.info.setdefault(_PENDING, []).append((log, row))


@event.listens_for(SyncSession, "before_commit")
def _insert_pending(session: SyncSession) -> None:
    if session.in_nested_transaction() or not session.info.get(_PENDING):
        return
    session.flush()
    pending = session.info.pop(_PENDING)
    lock(session)
    for log, insert in _inserts.items():
        rows = [row for name, row in pending if name == log]
        if rows:
            insert(session, rows)


def lock(session: SyncSession) -> None:
    """Takes the lock before the session's next statement or its commit."""
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        driver: Any = connection.connection.driver_connection
        driver.defer(_LOCK, [{}])


def read_time(session: SyncSession) -> datetime:
    """Returns the time by the clock of the database's machine, once the lock is held."""
    if session.get_bind().dialect.name == "postgresql":
        at: datetime = session.execute(select(db_now())).scalar_one()
        return at
    _begin_sqlite(session)
    return datetime.now(UTC) + timedelta(seconds=SKEW.seconds)


def _begin_sqlite(session: SyncSession) -> None:
    """Makes this transaction SQLite's only writer, if no statement of it was executed yet."""
    connection = session.connection()
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        connection.exec_driver_sql("SELECT 1")


@event.listens_for(SyncSession, "after_transaction_create")
def _mark_savepoint(session: SyncSession, transaction: SessionTransaction) -> None:
    if transaction.nested:
        session.info.setdefault(_MARKS, {})[transaction] = len(session.info.get(_PENDING, ()))


@event.listens_for(SyncSession, "after_soft_rollback")
def _forget_rolled_back(session: SyncSession, transaction: SessionTransaction) -> None:
    kept = session.info.get(_MARKS, {}).pop(transaction, 0) if transaction.nested else 0
    del session.info.get(_PENDING, [])[kept:]
