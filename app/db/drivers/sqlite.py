"""The SQLite driver: an aiosqlite cursor that calls the connection's thread once per statement.

aiosqlite and SQLAlchemy call it four times: to create a cursor, execute, fetch and close. A call
costs more than the statement: a query by key takes 0.5 ms of CPU time with one call and 1.7 ms with
four (measured on two slow cores). So BEGIN goes with the transaction's first statement, statements
whose results nobody reads may go with the next one or the commit, and a connection without a
transaction is not called to end one.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, Self

import aiosqlite

from app.client_presence import READER, ClientPresence

_STEPS: Final = 200_000
"""Steps of SQLite's virtual machine, some milliseconds, between two looks at the deadline."""


class SingleCallCursor:
    """The part of `aiosqlite.Cursor` that SQLAlchemy's adapter uses.

    A select fetches its rows and closes the real cursor in one call to the driver's thread.
    """

    arraysize = 1

    def __init__(self, connection: "SingleCallConnection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Self:
        """Executes a statement and fetches all rows of its result."""
        await self._connection.call_in_thread(
            partial(self._run, sqlite3.Connection.execute, statement, parameters)
        )
        return self

    async def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> Self:
        """Executes a statement once per row of parameters."""
        await self._connection.call_in_thread(
            partial(self._run, sqlite3.Connection.executemany, statement, parameters)
        )
        return self

    def _run(
        self, method: Any, statement: str, parameters: Any, connection: sqlite3.Connection
    ) -> None:
        cursor = method(connection, statement, parameters)
        try:
            self._rows = cursor.fetchall() if cursor.description else []
            self.description, self.rowcount, self.lastrowid = (
                cursor.description,
                cursor.rowcount,
                cursor.lastrowid,
            )
        finally:
            cursor.close()

    async def fetchall(self) -> list[Any]:
        """Returns all buffered rows."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Drops the buffered rows."""
        self._rows = []


class SingleCallConnection(aiosqlite.Connection):
    """An aiosqlite connection that creates `SingleCallCursor` objects."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], iter_chunk_size: int) -> None:
        super().__init__(connector, iter_chunk_size)
        self._deferred: list[Callable[[sqlite3.Connection], object]] = []
        self._calls_made = 0
        self._calls_ended = 0
        """Counted by the connection's thread, after each call."""
        self._statement_seconds = inf
        self._deadline = inf
        self._client: ClientPresence | None = None
        self._is_abandoned = False
        """Whether the client for which the present transaction reads has left."""

    def cursor(self) -> SingleCallCursor:  # type: ignore[override]
        """Returns a cursor without calling the thread."""
        return SingleCallCursor(self)

    def defer(self, function: Callable[[sqlite3.Connection], object]) -> None:
        """Calls `function` in the connection's thread before the next call, or with the commit.

        Its exception is raised there. A rollback before that drops it.
        """
        self._deferred.append(function)

    def begin(self, statement: str | None, statement_seconds: float | None) -> None:
        """Begins a transaction by `statement` with the next call.

        Args:
            statement: `None` for a single statement, which needs no beginning.
            statement_seconds: Deadline of each call of the thread, which is mostly a statement;
                `None` for no deadline.
        """
        self._statement_seconds = inf if statement_seconds is None else statement_seconds
        self._forget_client()
        self._client = None if statement_seconds is None else READER.get()
        if self._client is not None:
            self._client.begin_read(self._abandon)
        if statement is not None:
            self.defer(lambda connection: connection.execute(statement))

    def is_overdue(self) -> bool:
        """Returns whether the present call is to end. Called by SQLite."""
        return self._is_abandoned or time.monotonic() > self._deadline

    async def call_in_thread(self, function: Callable[[sqlite3.Connection], Any]) -> Any:
        """Calls `function` with the SQLite connection in that connection's thread."""
        deferred, self._deferred = self._deferred, []

        def run() -> Any:
            self._deadline = time.monotonic() + self._statement_seconds
            try:
                for one in deferred:
                    one(self._conn)
                return function(self._conn)
            finally:
                self._deadline = inf
                self._calls_ended += 1

        self._calls_made += 1
        return await self._execute(run)  # type: ignore[no-untyped-call]

    async def commit(self) -> None:
        """Makes the deferred calls and commits, unless there is nothing to commit."""
        self._forget_client()
        if not self._deferred and not self._may_be_in_transaction:
            return
        try:
            await self.call_in_thread(sqlite3.Connection.commit)
        except Exception:
            # SQLAlchemy takes the transaction as ended, and so would leave it open.
            await self.rollback()
            raise

    async def rollback(self) -> None:
        """Drops the deferred calls and rolls back, unless there is nothing to roll back."""
        self._forget_client()
        self._deferred.clear()
        if self._may_be_in_transaction:
            await self.call_in_thread(sqlite3.Connection.rollback)

    def _abandon(self) -> None:
        self._is_abandoned = True

    def _forget_client(self) -> None:
        self._is_abandoned = False
        if self._client is not None:
            self._client.end_read(self._abandon)
            self._client = None

    @property
    def has_ended(self) -> bool:
        """Whether the connection was closed and its thread has ended."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Waits for the thread of a connection that is being closed."""
        self._thread.join(seconds)

    @property
    def _may_be_in_transaction(self) -> bool:
        # A cancelled task leaves a call behind that may begin a transaction yet.
        return self._calls_made != self._calls_ended or self.in_transaction


async def connect(
    file: str, busy_seconds: float, connections: set[SingleCallConnection]
) -> SingleCallConnection:
    """Opens a database file.

    Args:
        file: Path, or `:memory:`.
        busy_seconds: Seconds that a statement waits for another writer.
        connections: The connection is added to them, and those that have ended are removed.
    """
    connection = SingleCallConnection(
        partial(sqlite3.connect, file, timeout=busy_seconds), iter_chunk_size=64
    )
    # SQLAlchemy sets this too: a connection that is not closed must not keep the process alive.
    connection._thread.daemon = True  # noqa: SLF001
    connections.difference_update([other for other in connections if other.has_ended])
    connections.add(connection)
    try:
        await connection
    except sqlite3.Error:
        # The thread ends with a last call to the event loop, which may be closed a moment later.
        connection._thread.join()  # noqa: SLF001
        raise
    await connection.set_progress_handler(connection.is_overdue, _STEPS)
    return connection


async def end(connections: Collection[SingleCallConnection], seconds: float) -> None:
    """Closes connections, and waits for their threads for at most `seconds`.

    Their tasks may have been cancelled while a thread executed a statement. A thread that ends one
    later would call an event loop that may be closed.
    """
    deadline = time.monotonic() + seconds
    open_connections = [connection for connection in connections if not connection.has_ended]
    for connection in open_connections:
        connection.stop()
    for connection in open_connections:
        await asyncio.to_thread(connection.join, max(0.0, deadline - time.monotonic()))


def connect_directly(file: str) -> sqlite3.Connection:
    """Opens a database file for statements that read, executed on the calling thread.

    Each is a transaction of its own, and fails at once if it would have to wait for a lock.
    """
    connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only=ON")
    return connection
