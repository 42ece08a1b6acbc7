"""The dispatcher: sends dispatch messages for queued jobs, with the database as outbox.

It reads which jobs are due, sends one Celery message each, then records that it did. A crash
between the two sends again; a lost message is sent again after a while; a worker that receives a
message twice finds nothing to claim. Only this module of the server imports celery.
"""

import asyncio
import contextlib
from typing import Final, Protocol

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from app.db.engine import QUEUE, Database
from app.services.jobs import dispatch_plan
from app.services.jobs.dispatch_plan import ReadyJob
from palestra.contract.names import DISPATCH_TASK, pool_queue
from palestra.contract.work_order import DispatchMessage

_log = structlog.get_logger("palestra.dispatcher")

POLL_SECONDS: Final = 1.0
"""Longest time between two reads of the queue, which another process may have changed."""
_LONGEST_PAUSE: Final = 5.0
_SOCKET_SECONDS: Final = 5.0


class DispatchError(Exception):
    """The broker could not be reached."""


class DispatchQueue(Protocol):
    """Sends dispatch messages."""

    def send(self, job: ReadyJob) -> None:
        """Sends the dispatch message of a job.

        Raises:
            DispatchError: If the broker cannot be reached.
        """


class CeleryDispatchQueue:
    """Sends dispatch messages as Celery messages: JSON, no result, no retry, no expiry."""

    def __init__(self, broker_url: str) -> None:
        self._celery: Final = Celery("palestra", broker=broker_url, set_as_current=False)
        self._celery.conf.update(
            task_serializer="json",
            accept_content=["json"],
            task_ignore_result=True,
            task_store_errors_even_if_ignored=False,
            task_create_missing_queues=True,
            broker_connection_retry=False,
            broker_connection_timeout=_SOCKET_SECONDS,
            broker_transport_options={
                "socket_timeout": _SOCKET_SECONDS,
                "socket_connect_timeout": _SOCKET_SECONDS,
                "socket_keepalive": True,
                "health_check_interval": 25,
                "max_retries": 0,
            },
        )

    def send(self, job: ReadyJob) -> None:
        """Sends the dispatch message of a job.

        Raises:
            DispatchError: If the broker cannot be reached.
        """
        message = DispatchMessage(job_id=job.job_id, expected_attempt=job.expected_attempt)
        try:
            self._celery.send_task(
                DISPATCH_TASK,
                kwargs=message.model_dump(mode="json"),
                queue=pool_queue(job.pool),
                ignore_result=True,
                retry=False,
            )
        except (OperationalError, OSError) as error:
            raise DispatchError(type(error).__name__) from error

    def close(self) -> None:
        """Closes the connections."""
        self._celery.close()


class Dispatcher:
    """Sends dispatch messages until it is cancelled.

    Args:
        database: Where the jobs are.
        queue: Where the dispatch messages go.
        ring_seconds: Seconds after which a dispatch message that no worker answered is sent again.
    """

    def __init__(self, database: Database, queue: DispatchQueue, *, ring_seconds: float) -> None:
        self._database = database
        self._queue = queue
        self._ring_seconds = ring_seconds
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Dispatches jobs whenever the queue changes, and at least once a second."""
        self._database.listeners.append(self._on_commit)
        try:
            pause = POLL_SECONDS
            while True:
                pause = POLL_SECONDS if await self._try_tick() else min(2 * pause, _LONGEST_PAUSE)
                await self._rest(pause)
        finally:
            self._database.listeners.remove(self._on_commit)

    async def tick(self) -> int:
        """Sends the messages of the jobs that are due; returns their number.

        Raises:
            DispatchError: If the broker cannot be reached. What was sent before is recorded.
        """
        async with self._database.read() as session:
            due = await dispatch_plan.plan(session, self._ring_seconds)
        sent: list[ReadyJob] = []
        try:
            for job in due:
                await asyncio.to_thread(self._queue.send, job)
                sent.append(job)
        finally:
            await self._note(sent)
        return len(sent)

    async def _note(self, sent: list[ReadyJob]) -> None:
        if sent:
            async with self._database.write() as session:
                await dispatch_plan.mark_dispatched(session, sent)
            _log.info("dispatcher.sent", jobs=[job.job_id for job in sent])

    async def _try_tick(self) -> bool:
        self._wake.clear()
        try:
            await self.tick()
        except DispatchError as error:
            _log.warning("dispatcher.broker_unreachable", error=str(error))
            return False
        # A failure must not end the daemon: the next round reads the queue anew.
        except Exception:  # noqa: BLE001
            _log.exception("dispatcher.failed")
            return False
        return True

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _on_commit(self, topics: frozenset[str]) -> None:
        if QUEUE in topics:
            self._wake.set()
