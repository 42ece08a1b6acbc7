"""Runs the three loops, inside the server or as a separate process."""

import asyncio

from app.daemons.compactor import Compactor
from app.daemons.dispatcher import CeleryDispatchQueue, Dispatcher
from app.daemons.reaper import Reaper
from app.db.engine import Database
from app.services.artifacts.blob_store import BlobStore
from app.settings import Settings


async def run(database: Database, settings: Settings) -> None:
    """Runs dispatcher, reaper and compactor until it is cancelled.

    Several such processes may run at the same time.
    """
    queue = CeleryDispatchQueue(settings.broker_url.get_secret_value())
    dispatcher = Dispatcher(database, queue, ring_seconds=settings.ring_seconds)
    reaper = Reaper(database, reclaim_seconds=settings.reclaim_seconds)
    compactor = Compactor(
        database,
        BlobStore(settings.artifact_dir, settings.reserve_mib * 2**20),
        idempotency_seconds=settings.idempotency_seconds,
        audit_keep_days=settings.audit_keep_days,
    )
    try:
        async with asyncio.TaskGroup() as group:
            for daemon in (dispatcher, reaper, compactor):
                group.create_task(daemon.run())
    finally:
        queue.close()
