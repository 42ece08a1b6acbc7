"""The remover: ends the jobs of deleted projects, and removes projects after their restore window.

A removal shares the database with all requests: after each short transaction it waits as long as
the transaction took.
"""

import asyncio
import time
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import deleted_projects
from app.services.artifacts.blob_store import BlobStore
from app.services.projects import removal

_log = structlog.get_logger("palestra.remover")

PERIOD: Final = 10.0
_SHORTEST_PAUSE: Final = 0.01


class ProjectRemover:
    """Removes deleted projects.

    Args:
        database: Database of the rows.
        store: Store of the blobs.
    """

    def __init__(self, database: Database, store: BlobStore) -> None:
        self._database = database
        self._store = store

    async def run(self) -> None:
        """Looks for deleted projects every ten seconds until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="remover.failed")

    async def tick(self) -> int:
        """Cancels jobs of deleted projects and removes due projects; returns the number of rows."""
        async with self._database.read() as session:
            found = await deleted_projects.list_due(session)
        removed = 0
        for project_id in found:
            await removal.end_jobs(self._database, project_id)
            async with self._database.write() as session:
                due = await deleted_projects.start_removal(session, project_id)
            if due:
                removed += await self._remove(project_id)
        return removed

    async def _remove(self, project_id: str) -> int:
        await removal.end_attempts(self._database, project_id)
        removed, finished = 0, False
        while not finished:
            begun = time.monotonic()
            done = await removal.step(self._database, self._store, project_id)
            removed, finished = removed + done.rows, done.is_finished
            await asyncio.sleep(max(_SHORTEST_PAUSE, time.monotonic() - begun))
        _log.info("remover.removed", project_id=project_id, rows=removed)
        return removed
