"""The PostgreSQL driver: a psycopg connection that sends statements together in one round trip.

A round trip costs more than most statements. So BEGIN goes with the transaction's first statement,
and statements whose results nobody reads go with the next one or the commit, as on SQLite
(`app.db.drivers.sqlite`). The server executes them in order, and none after one that fails.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import psycopg

from app.client_presence import READER, ClientPresence
from palestra.backoff import Backoff

_CANCEL_SECONDS: Final = 5.0
"""Longest time that the request to end a statement takes."""
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
"""Between two requests to end a statement."""


class PipelinedConnection(psycopg.AsyncConnection[Any]):
    """A connection that keeps statements for its next round trip. It must be in autocommit mode."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cursor_factory = PipelinedCursor
        self._deferred: list[tuple[bytes, Sequence[Mapping[str, Any]]]] = []
        self.statement_seconds: float | None = None
        """Deadline of a statement, unless its transaction has another one."""
        self._client: ClientPresence | None = None
        self._ending: asyncio.Task[None] | None = None
        """Ends the statements of a client that has left."""
        self._read_ended = asyncio.Event()

    @property
    def has_deferred(self) -> bool:
        """Whether statements wait for the next round trip."""
        return bool(self._deferred)

    def defer(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Executes a statement for each row of parameters before the next one, or with the commit.

        Its error is raised there. A rollback before that drops it.
        """
        self._deferred.append((sql.encode(), rows))

    def begin(self, statement: str | None, statement_seconds: float | None) -> None:
        """Begins a transaction by `statement` in the next round trip.

        Args:
            statement: `None` for a single statement, which needs no beginning.
            statement_seconds: Deadline of each statement of the transaction; `None` for no
                deadline. A single statement has the connection's own.
        """
        if self._client is None and statement_seconds is not None:
            self._client = READER.get()
            if self._client is not None:
                self._client.begin_read(self._abandon)
        if statement is None:
            return
        self.defer(statement, [{}])
        if statement_seconds != self.statement_seconds:
            milliseconds = int(1000 * (statement_seconds or 0))
            self.defer(f"SET LOCAL statement_timeout = {milliseconds}", [{}])

    async def send_deferred(self) -> None:
        """Sends the deferred statements; to be called in a pipeline."""
        deferred, self._deferred = self._deferred, []
        for sql, rows in deferred:
            cursor = psycopg.AsyncCursor(self)
            if len(rows) == 1:
                await cursor.execute(sql, rows[0] or None)
            else:
                await cursor.executemany(sql, rows)

    async def commit(self) -> None:
        """Executes the deferred statements and commits, in one round trip."""
        await self._forget_client()
        if not self._deferred:
            await super().commit()
            return
        try:
            async with self.pipeline():
                self.defer("COMMIT", [{}])
                await self.send_deferred()
        except Exception:
            # SQLAlchemy takes the transaction as ended, and so would leave it open for the next
            # one, which would commit what it wrote. Not only the driver's errors end up here: a
            # parameter may be one that it cannot encode.
            with contextlib.suppress(psycopg.Error):
                await self.rollback()
            raise

    async def rollback(self) -> None:
        """Drops the deferred statements and rolls back."""
        await self._forget_client()
        self._deferred.clear()
        await super().rollback()

    def refuse_abandoned(self) -> None:
        """Refuses a further statement for a client that has left."""
        if self._ending is not None:
            raise psycopg.errors.QueryCanceled("the client of this read has left")

    def _abandon(self) -> None:
        if self._ending is None:
            self._read_ended.clear()
            self._ending = asyncio.get_running_loop().create_task(self._cancel_statements())

    async def _cancel_statements(self) -> None:
        """Ends what the connection executes until the read has ended.

        The server ignores a request that reaches it before the statement does.
        """
        pauses = Backoff(longest=_LONGEST_PAUSE_SECONDS, first=_FIRST_PAUSE_SECONDS)
        while not (self._read_ended.is_set() or self.closed):
            with contextlib.suppress(psycopg.Error, OSError):
                await self.cancel_safe(timeout=_CANCEL_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._read_ended.wait(), pauses.compute_next_wait())

    async def _forget_client(self) -> None:
        if self._client is not None:
            self._client.end_read(self._abandon)
            self._client = None
        if self._ending is not None:
            # The connection's next statement must not be the one that ends.
            self._read_ended.set()
            await asyncio.wait([self._ending])
            self._ending = None


class PipelinedCursor(psycopg.AsyncCursor[Any]):
    """A cursor whose statements travel together with those that its connection deferred."""

    async def execute(self, *args: Any, **options: Any) -> Self:
        """Executes the deferred statements and this one, in one round trip."""
        driver = self.connection
        if isinstance(driver, PipelinedConnection):
            driver.refuse_abandoned()
        if not isinstance(driver, PipelinedConnection) or not driver.has_deferred:
            return await super().execute(*args, **options)
        async with driver.pipeline():
            await driver.send_deferred()
            await super().execute(*args, **options)
        return self

    async def executemany(self, *args: Any, **options: Any) -> None:
        """Executes the deferred statements and this one, in one round trip."""
        driver = self.connection
        if not isinstance(driver, PipelinedConnection) or not driver.has_deferred:
            await super().executemany(*args, **options)
            return
        async with driver.pipeline():
            await driver.send_deferred()
            await super().executemany(*args, **options)
