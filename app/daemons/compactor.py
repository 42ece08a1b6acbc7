"""The compactor: deletes expired stored answers, events, audit entries and unreferenced blobs.

The history of runs is never deleted.
"""

from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import retention
from app.services.artifacts import artifacts
from app.services.artifacts.blob_store import BlobStore
from app.services.audit import retention as audit_retention

_log = structlog.get_logger("palestra.compactor")

PERIOD: Final = 600.0
EVENT_SECONDS: Final = 3_600.0
"""Seconds for which an event is kept; a page with an older cursor reloads its history.

The log is there for streams that were interrupted, and takes more room than the points themselves.
"""


class Compactor:
    """Deletes expired data.

    Args:
        database: Database of the rows.
        store: Store of the blobs.
        idempotency_seconds: Seconds for which the answer of an idempotency key is kept.
        audit_keep_days: Days for which entries of the audit log are kept; 0 keeps them for ever.
    """

    def __init__(
        self,
        database: Database,
        store: BlobStore,
        *,
        idempotency_seconds: float,
        audit_keep_days: int = 0,
    ) -> None:
        self._database = database
        self._store = store
        self._idempotency = idempotency_seconds
        self._audit_keep_days = audit_keep_days

    async def run(self) -> None:
        """Cleans up every ten minutes until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="compactor.failed")

    async def tick(self) -> int:
        """Deletes expired data; returns the number of rows and blobs."""
        async with self._database.write() as session:
            forgotten = await retention.forget_answers(session, self._idempotency)
        forgotten += await self._forget_events()
        async with self._database.write() as session:
            forgotten += await audit_retention.cut(session, self._audit_keep_days)
        blobs = await artifacts.sweep(self._database, self._store)
        if forgotten or blobs:
            _log.info("compactor.forgot", rows=forgotten, blobs=blobs)
        return forgotten + blobs

    async def _forget_events(self) -> int:
        """Deletes all expired events, each batch in a transaction of its own."""
        total = 0
        while True:
            async with self._database.write() as session:
                deleted = await retention.forget_events(session, EVENT_SECONDS)
            if not deleted:
                return total
            total += deleted
