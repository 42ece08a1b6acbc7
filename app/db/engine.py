"""Connections: one engine per process, sessions that read, and sessions that write and commit.

SQLite runs in WAL mode with `synchronous=FULL`; a writing session begins with `BEGIN IMMEDIATE`,
since SQLite may refuse to turn a read lock into a write lock later. On PostgreSQL a session that
writes runs at READ COMMITTED: what must happen only once is a single statement or is enforced by a
unique index. A session that reads sees one snapshot of the database, as on SQLite, so rows that
its statements read one after the other fit each other.
"""

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, Final

from sqlalchemy import Connection, Dialect, event, make_url, select, text
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from app.db import faults
from app.db.drivers import sqlite
from app.db.drivers.postgresql import PipelinedConnection
from app.domain.errors import StorageFullError

Session = AsyncSession
"""The session that services and repositories receive. They never commit it."""

Topic = str
OnCommit = Callable[[frozenset[Topic]], None]

QUEUE: Final[Topic] = "queue"
"""A job became ready, or a slot became free."""
BROKER_USERS: Final[Topic] = "broker_users"
"""Workers registered, or were forgotten."""
EVENTS: Final[Topic] = "events"
"""Rows were appended to the event log."""
ACCESS: Final[Topic] = "access"
"""A credential ended, or a user's roles changed."""

WAIT_SECONDS: Final = 30.0
"""Longest time that a transaction waits for a connection, and on SQLite for another writer."""
STATEMENT_SECONDS: Final = 5.0
"""Longest time of a statement that reads for a request."""
BACKGROUND_STATEMENT_SECONDS: Final = 60.0
"""Longest time of a statement that reads for a daemon, or for a part of an export."""
_TOPICS: Final = "palestra_topics"
_DRIVERS: Final = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
BEGINNINGS: Final = {
    "sqlite": ("BEGIN", "BEGIN IMMEDIATE"),
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN"),
}
"""Statements that begin a transaction that reads, and one that writes."""
_END_SECONDS: Final = 10.0
"""Longest time that closing waits for statements of cancelled tasks."""
_TRUSTED_SECONDS: Final = 1.0
"""Seconds after its latest use for which a pooled connection counts as alive."""
_MAX_PREPARED: Final = 500
"""Statements that a connection keeps prepared; psycopg's default is fewer than a server uses."""
_USED_AT: Final = "palestra_used_at"


class Database:
    """The engine of a process, which opens sessions that read and sessions that write.

    Args:
        url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`.
        pool_size: Number of connections kept open; on SQLite of those that read.
        wait_seconds: Longest time that a transaction waits for a connection, and on SQLite a
            statement for another writer.
        statement_seconds: Longest time of a statement of a session that reads; see `read`.
        writer: Engine of sessions that write; one of its own by default.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        wait_seconds: float = WAIT_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
        writer: AsyncEngine | None = None,
    ) -> None:
        self._url: Final = url
        self.statement_seconds: Final = statement_seconds
        self._connections: Final[set[sqlite.SingleCallConnection]] = set()
        """Those of SQLite, also while they are opened."""
        self.engine: Final = _create_engine(
            url, pool_size, wait_seconds, statement_seconds, self._connections
        )
        self.dialect_name: Final[str] = self.engine.dialect.name
        """`sqlite` or `postgresql`."""
        self._is_writer_shared: Final = writer is not None
        if writer is None and self.dialect_name == "sqlite":
            writer = _create_engine(url, 1, wait_seconds, statement_seconds, self._connections)
        self.writer: Final = writer or self.engine
        """Engine of sessions that write. SQLite has one writer at a time, so it has one connection:
        those that wait for it hold none, which sessions that read would lack."""
        self.listeners: list[OnCommit] = []
        self.is_full = False
        """Whether the latest transaction that wrote failed because the database's disk is full."""
        self._commits_reads: Final = self.dialect_name == "postgresql"
        """Whether reading transactions, which the database lets write nothing, are committed.

        After a rollback psycopg prepares all statements of the connection anew.
        """
        reads, writes = BEGINNINGS[self.dialect_name]
        self._read: Final = cache(partial(self._make_readers, reads))
        single = self.engine.execution_options(
            palestra_begin=None, palestra_seconds=statement_seconds
        )
        self._single: Final = async_sessionmaker(single, expire_on_commit=False, autoflush=False)
        self._direct: sqlite3.Connection | None = None
        writing = self.writer.execution_options(palestra_begin=writes, palestra_seconds=None)
        self._write: Final = async_sessionmaker(writing, expire_on_commit=False)

    def _make_readers(self, begin: str, seconds: float) -> async_sessionmaker[Session]:
        reading = self.engine.execution_options(palestra_begin=begin, palestra_seconds=seconds)
        return async_sessionmaker(reading, expire_on_commit=False, autoflush=False)

    @asynccontextmanager
    async def read(self, statement_seconds: float | None = None) -> AsyncIterator[Session]:
        """Yields a session that sees one snapshot of the database and writes nothing.

        A statement that takes longer than its deadline is ended by the database, with an error of
        which `faults.exceeded_deadline` is true.

        Args:
            statement_seconds: Deadline of each statement, in place of the one of this object.
        """
        async with self._read(statement_seconds or self.statement_seconds)() as session:
            yield session
            if self._commits_reads:
                await session.commit()

    @asynccontextmanager
    async def open_without_transaction(self) -> AsyncIterator[Session]:
        """Yields a session for one statement that reads; for `app.db.prepared` alone.

        It begins no transaction, which would take two more round trips.
        """
        async with self._single() as session:
            yield session

    def reserve(self, pool_size: int) -> "Database":
        """Returns the same database with connections of its own.

        Work that must go on while requests use all of the others does it by these. The listeners
        are the same. On SQLite the connection that writes is the same, too, so that whoever waits
        for it gets it in turn: SQLite lets the writer of a busy process in again and again, while
        that of another connection waits.

        Args:
            pool_size: Number of connections kept open.
        """
        reserved = Database(
            self._url,
            pool_size=pool_size,
            statement_seconds=BACKGROUND_STATEMENT_SECONDS,
            writer=None if self.writer is self.engine else self.writer,
        )
        reserved.listeners = self.listeners
        return reserved

    def open_direct(self) -> sqlite3.Connection | None:
        """Returns SQLite's connection for statements that are executed on the calling thread.

        For `app.db.prepared` alone. It can only read, never waits for a lock, and sees what is
        committed when a statement begins. `None` where there is no such connection.
        """
        url = self.engine.url
        if self.dialect_name != "sqlite" or url.database in {None, "", ":memory:"}:
            return None
        if self._direct is None:
            self._direct = sqlite.connect_directly(str(url.database))
        return self._direct

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Session]:
        """Yields a session.

        Commits at the end, rolls back when the block raises, and calls the listeners with the
        committed topics.

        Raises:
            StorageFullError: If the database's disk is full; nothing was written.
        """
        async with self._write() as session:
            try:
                yield session
                await session.commit()
            except Exception as error:
                if not faults.is_full(error):
                    raise
                self.is_full = True
                raise StorageFullError(
                    "The disk of the server's database is full. Free some space on it."
                ) from error
        self.is_full = False
        topics = frozenset(session.info.pop(_TOPICS, ()))
        if topics:
            for listener in tuple(self.listeners):
                listener(topics)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[Session]:
        """Yields a session that writes and is rolled back at the end.

        The session shows whether the statements would succeed, apart from deferred checks.
        """
        async with self._write() as session:
            yield session
            await session.flush()
            # The driver of SQLite may have kept statements for the commit, which does not come.
            await session.execute(text("SELECT 1"))
            await session.rollback()

    async def try_to_write(self) -> None:
        """Rewrites one row unchanged, to check whether the disk has space again.

        Raises:
            StorageFullError: If the disk is still full.
        """
        async with self.write() as session:
            await session.execute(text("UPDATE alembic_version SET version_num = version_num"))

    async def ping(self) -> None:
        """Runs a trivial query; passes on the driver's error if the database does not answer."""
        async with self.engine.connect() as connection:
            await connection.execute(select(1))

    async def dispose(self) -> None:
        """Closes all connections, and waits for statements of cancelled tasks."""
        if self._direct is not None:
            self._direct.close()
            self._direct = None
        for engine in {self.engine} if self._is_writer_shared else {self.engine, self.writer}:
            await engine.dispose()
        await sqlite.end(self._connections, _END_SECONDS)


def announce(session: Session, topic: Topic) -> None:
    """Calls the listeners with `topic` once the session's transaction is committed."""
    session.info.setdefault(_TOPICS, set()).add(topic)


def build_async_url(url: str) -> str:
    """Returns an address of `Settings.database` with the async driver of its database."""
    scheme, _, rest = url.partition(":")
    return f"{_DRIVERS[scheme.partition('+')[0]]}:{rest}"


def _create_engine(
    url: str,
    pool_size: int,
    wait_seconds: float,
    statement_seconds: float,
    connections: set[sqlite.SingleCallConnection],
) -> AsyncEngine:
    target = make_url(build_async_url(url))
    if target.get_backend_name() == "sqlite":
        opened = partial(sqlite.connect, target.database or ":memory:", wait_seconds, connections)
        # The connection that was used last has the pages and statements that the next one needs.
        engine = create_async_engine(
            target,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=wait_seconds,
            async_creator=opened,
            pool_use_lifo=True,
        )
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin)
        return engine
    # The driver must not begin transactions by itself, which would take a round trip.
    options = {"async_creator_fn": PipelinedConnection.connect, "autocommit": True}
    engine = create_async_engine(
        target,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=wait_seconds,
        connect_args=options,
    )
    event.listen(engine.sync_engine, "begin", _begin)
    event.listen(engine.sync_engine, "connect", partial(_prepare_postgres, statement_seconds))
    event.listen(engine.sync_engine, "checkin", _note_use)
    event.listen(engine.sync_engine, "checkout", partial(_check_connection, engine.dialect))
    return engine


def _prepare_postgres(statement_seconds: float, connection: Any, _record: Any) -> None:
    driver = connection.driver_connection
    driver.prepared_max = _MAX_PREPARED
    cursor = connection.cursor()
    cursor.execute(f"SET statement_timeout = {int(1000 * statement_seconds)}")
    cursor.close()
    driver.statement_seconds = statement_seconds


def _note_use(_connection: Any, record: Any) -> None:
    record.info[_USED_AT] = time.monotonic()


def _check_connection(dialect: Dialect, connection: Any, record: Any, _proxy: Any) -> None:
    """Replaces the idle connections if the database has closed this one.

    A connection that was used a moment ago is not asked, since the answer costs a round trip.
    """
    used_at = record.info.get(_USED_AT)
    if used_at is None or time.monotonic() - used_at < _TRUSTED_SECONDS:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise InvalidatePoolError from error


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    # SQLite's own `lower` converts ASCII letters only.
    connection.create_function("lower", 1, _lower, deterministic=True)
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA temp_store=MEMORY")
    cursor.close()


def _lower(value: Any) -> str | None:
    return None if value is None else str(value).lower()


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    driver: Any = connection.connection.driver_connection
    # A single statement is a transaction without a beginning.
    driver.begin(options.get("palestra_begin", "BEGIN"), options.get("palestra_seconds"))
