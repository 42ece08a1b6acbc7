"""Runs the daemons, inside the server or as a separate process."""

import asyncio

from app.bus import Bus
from app.cancellation import cancel_all
from app.daemons.compactor import Compactor
from app.daemons.curve_compactor import CurveCompactor
from app.daemons.dispatcher import CeleryDispatchQueue, Dispatcher
from app.daemons.judge import Judge
from app.daemons.pool_recorder import PoolRecorder
from app.daemons.reaper import Reaper
from app.daemons.remover import ProjectRemover
from app.daemons.space_returner import SpaceReturner
from app.daemons.start_estimator import StartEstimator
from app.daemons.summariser import Summariser
from app.db.engine import Database
from app.services.artifacts.blob_store import BlobStore
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings


async def run(database: Database, settings: Settings, bus: Bus, broker_users: BrokerUsers) -> None:
    """Runs all daemons until it is cancelled.

    Several such processes may run at the same time. One of the dispatchers holds the lease and
    assigns jobs; what the other daemons write is a compare-and-set, or done under a lock.

    Args:
        database: The database, whose listeners publish commits to the bus.
        settings: The settings of the process.
        bus: Tells of commits; its caller runs it.
        broker_users: Users of the broker; its caller runs it.
    """
    queue = CeleryDispatchQueue(settings.broker_url.get_secret_value())
    dispatcher = Dispatcher(
        database,
        queue,
        assignment_seconds=settings.assignment_seconds,
        broker_users=broker_users,
    )
    reaper = Reaper(database, reclaim_seconds=settings.reclaim_seconds)
    store = BlobStore(settings.artifact_dir, settings.reserve_mib * 2**20)
    compactor = Compactor(
        database,
        store,
        idempotency_seconds=settings.idempotency_seconds,
        audit_keep_days=settings.audit_keep_days,
    )
    daemons = (
        reaper,
        compactor,
        CurveCompactor(database),
        Summariser(database),
        Judge(database),
        ProjectRemover(database, store),
        SpaceReturner(database),
        PoolRecorder(database),
        StartEstimator(database),
    )
    work = [dispatcher.run(bus), *(daemon.run() for daemon in daemons)]
    tasks = [asyncio.create_task(part) for part in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        await cancel_all(tasks)
        queue.close()
