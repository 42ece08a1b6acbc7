"""The dispatcher's lease: of several dispatchers one assigns jobs.

The lease is a row with an epoch, which each taking raises, and a time by the database's clock.
Every transaction in which a dispatcher writes begins with `confirm`, a compare-and-set of the epoch
that locks the row: a dispatcher that was stopped, whose lease another one took meanwhile, writes
nothing when it goes on.
"""

import os
import platform
import time
from collections.abc import Callable
from typing import Final, Literal

import structlog

from app.db.engine import QUEUE, Database, Session, announce
from app.db.repositories import dispatcher_lease as rows

_log = structlog.get_logger("palestra.dispatcher")

TTL_SECONDS: Final = 4.0
"""Time after which another dispatcher may take the lease of one that is silent."""
_RENEW_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.5
"""Shortest time between two reads of a lease that another dispatcher holds."""
_SQLITE_SECONDS: Final = 10 * 365 * 86_400.0
"""On SQLite there is one dispatcher, which takes the lease once and does not renew it."""

Place = Literal["here", "elsewhere", "nowhere"]


class LeaseLostError(Exception):
    """Another dispatcher took the lease."""


def name_this_process() -> str:
    """Returns the name under which a dispatcher of this process holds the lease."""
    return f"{platform.node()[:120] or 'unknown'}, process {os.getpid()}"


class DispatcherLease:
    """The lease as one dispatcher sees it.

    Args:
        database: The database of the row.
        holder: Name of the dispatcher.
        monotonic: Clock of this process in seconds. It decides when the lease is renewed or read
            again, never who holds it.
    """

    def __init__(
        self,
        database: Database,
        holder: str = "",
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._holder = holder or name_this_process()
        self._monotonic = monotonic
        self._is_shared = database.engine.dialect.name == "postgresql"
        self._seconds = TTL_SECONDS if self._is_shared else _SQLITE_SECONDS
        self._is_first = True
        self._asked_at: float | None = None
        self.epoch: int | None = None
        """Epoch with which this dispatcher held the lease when it last asked; `None` if it did not.
        """

    async def hold(self) -> bool:
        """Renews the lease, or takes it if it is free; returns whether this dispatcher holds it.

        Repeated calls within a short time return the latest answer without asking the database.
        """
        now = self._monotonic()
        pause = _LOOK_SECONDS if self.epoch is None else _RENEW_SECONDS
        if self._asked_at is not None and now - self._asked_at < pause:
            return self.epoch is not None
        if self.epoch is not None and (not self._is_shared or await self._renew()):
            self._asked_at = now
            return True
        await self._take()
        self._asked_at = now
        return self.epoch is not None

    async def confirm(self, session: Session) -> None:
        """Renews the lease in a transaction that writes decisions of the dispatcher.

        Until the transaction ends no other dispatcher can take the lease; PostgreSQL ends it if
        this process is stopped during it.

        Raises:
            LeaseLostError: If another dispatcher took the lease. Nothing may be written.
        """
        await rows.end_if_idle(session, TTL_SECONDS)
        if self.epoch is None or not await rows.renew(session, self.epoch, self._seconds):
            self._lose()
            raise LeaseLostError

    async def release(self) -> None:
        """Releases the lease, so that another dispatcher can take it at once."""
        if self.epoch is None:
            return
        epoch, self.epoch = self.epoch, None
        async with self._database.write() as session:
            await rows.release(session, epoch)
            announce(session, QUEUE)
        _log.info("dispatcher.lease_released", holder=self._holder, epoch=epoch)

    async def _renew(self) -> bool:
        try:
            async with self._database.write() as session:
                await self.confirm(session)
        except LeaseLostError:
            return False
        return True

    async def _take(self) -> None:
        # A process that was killed has left a lease; where no other process can be, it is over.
        from_living = self._is_first and not self._is_shared
        self._is_first = False
        if not from_living:
            async with self._database.read() as session:
                found = await rows.read(session)
            if found is not None and found.is_held:
                return
        async with self._database.write() as session:
            await rows.end_if_idle(session, TTL_SECONDS)
            epoch = await rows.take(session, self._holder, self._seconds, from_living=from_living)
        # Not before the commit: one that fails takes nothing.
        self.epoch = epoch
        if epoch is not None:
            _log.info("dispatcher.lease_taken", holder=self._holder, epoch=epoch)

    def _lose(self) -> None:
        if self.epoch is not None:
            _log.warning("dispatcher.lease_lost", holder=self._holder, epoch=self.epoch)
        self.epoch = None


async def find_dispatcher(database: Database) -> Place:
    """Returns whether jobs are assigned by this process, by another one, or by none."""
    async with database.read() as session:
        found = await rows.read(session)
    if found is None or not found.is_held:
        return "nowhere"
    return "here" if found.holder == name_this_process() else "elsewhere"
