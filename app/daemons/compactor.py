"""The compactor: deletes old idempotency answers, old events and unreferenced blobs.

The history of runs is never deleted.
"""

import asyncio
from typing import Final

import structlog

from app.db.engine import Database
from app.db.repositories import retention
from app.services.artifacts import artifacts
from app.services.artifacts.blob_store import BlobStore

_log = structlog.get_logger("palestra.compactor")

PERIOD: Final = 600.0
EVENT_SECONDS: Final = 7 * 86_400.0
"""Seconds for which an event is kept; a page with an older cursor reloads its history."""


class Compactor:
    """Deletes expired data.

    Args:
        database: Database of the rows.
        store: Store of the blobs.
        idempotency_seconds: Seconds for which the answer of an idempotency key is kept.
    """

    def __init__(self, database: Database, store: BlobStore, *, idempotency_seconds: float) -> None:
        self._database = database
        self._store = store
        self._idempotency = idempotency_seconds

    async def run(self) -> None:
        """Cleans up every ten minutes until it is cancelled."""
        while True:
            try:
                await self.tick()
            # A daemon outlives every failure; the next look starts afresh.
            except Exception:  # noqa: BLE001
                _log.exception("compactor.failed")
            await asyncio.sleep(PERIOD)

    async def tick(self) -> int:
        """Deletes expired data; returns the number of rows and blobs."""
        async with self._database.write() as session:
            forgotten = await retention.forget_answers(
                session, self._idempotency
            ) + await retention.forget_events(session, EVENT_SECONDS)
        blobs = await artifacts.sweep(self._database, self._store)
        if forgotten or blobs:
            _log.info("compactor.forgot", rows=forgotten, blobs=blobs)
        return forgotten + blobs
