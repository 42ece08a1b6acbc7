"""The dispatcher: assigns queued jobs to workers, and tells each worker by a Celery message.

It decides, stores the assignments, then sends one message each. An assignment that no worker
claims in time, since the message or the worker was lost, expires and is made anew; a worker that
receives a message twice finds nothing to claim. Of several dispatchers the one that holds the lease
decides, and each of its writes confirms the lease. Only this module of the server imports celery.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import structlog
from celery import Celery
from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from app.bus import Bus
from app.db.engine import QUEUE, Database, Session
from app.services.jobs import dispatch_plan
from app.services.jobs.dispatch_plan import AssignedJob
from app.services.queue.dispatcher_lease import DispatcherLease, LeaseLostError
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.workers.broker_users import BrokerUsers
from palestra.backoff import Backoff
from palestra.contract.names import DISPATCH_TASK
from palestra.contract.work_order import DispatchMessage

_log = structlog.get_logger("palestra.dispatcher")

POLL_SECONDS: Final = 1.0
"""Longest time between two reads of the queue: a notification of its change may be lost."""
_MAX_PAUSE_SECONDS: Final = 5.0
_REST: Final = 2.0
"""Rest after a decision, as a multiple of the time that it took.

What changes meanwhile is decided together, so that a busy queue does not take a whole processor.
"""
_MAX_REST_SECONDS: Final = 0.25
_RELEASE_SECONDS: Final = 2.0
_SOCKET_SECONDS: Final = 5.0
_SOCKET_OPTIONS: Final[dict[str, Any]] = {
    "socket_timeout": _SOCKET_SECONDS,
    "socket_connect_timeout": _SOCKET_SECONDS,
}
_PRIORITY_SUFFIXES: Final = ("", "\x06\x163", "\x06\x166", "\x06\x169")
"""What kombu appends to a queue's name for the keys of its priorities."""
_FAILURES: Final = (KombuError, RedisError, OSError)


class DispatchError(Exception):
    """The broker could not be reached."""


class MessageRefusedError(Exception):
    """The broker refused the dispatch message of a job."""


class DispatchQueue(Protocol):
    """Sends dispatch messages."""

    def send(self, job: AssignedJob) -> None:
        """Sends the dispatch message of a job.

        Raises:
            DispatchError: If the broker cannot be reached.
            MessageRefusedError: If the broker refuses the message; other jobs may be sent.
        """


class CeleryDispatchQueue:
    """Sends dispatch messages as Celery messages: JSON, no result, no retry, no expiry."""

    def __init__(self, broker_url: str) -> None:
        self._url = broker_url
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
                **_SOCKET_OPTIONS,
                "socket_keepalive": True,
                "health_check_interval": 25,
                "max_retries": 0,
            },
        )

    def send(self, job: AssignedJob) -> None:
        """Sends the dispatch message of a job.

        A key of the queue that holds something else than a list is deleted before.

        Raises:
            DispatchError: If the broker cannot be reached.
            MessageRefusedError: If the broker refuses the message.
        """
        try:
            try:
                self._send(job)
            except _FAILURES as error:
                if "WRONGTYPE" not in str(error):
                    raise
                self._delete_keys_of_wrong_type(job.queue)
                self._send(job)
        except _FAILURES as error:
            if isinstance(error, ResponseError) or isinstance(error.__cause__, ResponseError):
                raise MessageRefusedError(str(error)) from error
            raise DispatchError(type(error).__name__) from error

    def _send(self, job: AssignedJob) -> None:
        message = DispatchMessage(
            job_id=job.job_id, expected_attempt=job.expected_attempt, slots=job.slots
        )
        self._celery.send_task(
            DISPATCH_TASK,
            kwargs=message.model_dump(mode="json"),
            queue=job.queue,
            ignore_result=True,
            retry=False,
        )

    def _delete_keys_of_wrong_type(self, queue: str) -> None:
        types = {f"{queue}{suffix}": "list" for suffix in _PRIORITY_SUFFIXES}
        types |= {f"_kombu.{kind}.{queue}": "set" for kind in ("binding", "binding_permanent")}
        with Redis.from_url(self._url, decode_responses=True, **_SOCKET_OPTIONS) as broker:
            for key, expected in types.items():
                if (present := broker.type(key)) not in {expected, "none"}:
                    broker.delete(key)
                    _log.warning("dispatcher.key_replaced", key=key, type=present)

    def close(self) -> None:
        """Closes the connections."""
        self._celery.close()


class Dispatcher:
    """Sends dispatch messages until it is cancelled.

    Args:
        database: Database of the jobs.
        queue: Sends the dispatch messages.
        assignment_seconds: An assignment that no worker claimed expires after this.
        broker_users: Makes the workers' users of the broker, before messages are sent to them.
        lease: The lease without which nothing is written; by default that of this process.
        poll_seconds: Longest time between two looks at the queue that no notification caused.
    """

    def __init__(
        self,
        database: Database,
        queue: DispatchQueue,
        *,
        assignment_seconds: float,
        broker_users: BrokerUsers | None = None,
        lease: DispatcherLease | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._database = database
        self._broker_users = broker_users
        self._queue = queue
        self._assignment_seconds = assignment_seconds
        self._poll_seconds = poll_seconds
        self._equipped = EquippedWorkers()
        self.lease: Final = lease or DispatcherLease(database)
        self._known_epoch: int | None = None
        """Epoch of the lease in which the messages of the dispatcher before were sent again."""

    async def run(self, bus: Bus) -> None:
        """Dispatches jobs whenever the queue changes, and at least once a second.

        Args:
            bus: Notifies of commits of this process and of the processes that are connected to it.
        """
        changes = bus.subscribe(QUEUE)
        try:
            backoff = Backoff(longest=_MAX_PAUSE_SECONDS, first=2 * self._poll_seconds)
            while True:
                began = time.monotonic()
                pause = self._poll_seconds
                if await self._try_tick():
                    backoff.reset()
                else:
                    pause = backoff.compute_next_wait(minimum=pause)
                await asyncio.sleep(min(_REST * (time.monotonic() - began), _MAX_REST_SECONDS))
                await changes.wait(pause)
        finally:
            bus.unsubscribe(changes)
            await self._release()

    async def tick(self) -> int:
        """Assigns the jobs that can start and sends their messages; returns their number.

        Zero while another dispatcher holds the lease.

        Raises:
            DispatchError: If the broker cannot be reached. The jobs whose message was not sent are
                queued as before.
            LeaseLostError: If another dispatcher took the lease since the decision. Nothing was
                written.
        """
        if not await self.lease.hold():
            return 0
        await self._take_over()
        async with self._database.read() as session:
            decisions = await dispatch_plan.decide(session, self._equipped)
        if not decisions:
            return 0
        async with self._write() as session:
            assigned = await dispatch_plan.assign(session, decisions, self._assignment_seconds)
        sent = await self._send(assigned)
        if sent:
            _log.info("dispatcher.sent", jobs=sent)
        return len(sent)

    async def _send(self, assigned: Sequence[AssignedJob]) -> list[str]:
        """Sends messages, ends the assignments of the others; returns the IDs of sent jobs."""
        sent: list[str] = []
        try:
            await self._try_to_send(assigned, sent)
        finally:
            await self._end_unsent([job for job in assigned if job.job_id not in sent])
        return sent

    async def _try_to_send(self, jobs: Sequence[AssignedJob], sent: list[str]) -> None:
        """Sends messages; adds the ID of each job whose message the broker took to `sent`."""
        if self._broker_users is not None:
            await self._broker_users.update(self._database)
        for job in jobs:
            try:
                await asyncio.to_thread(self._queue.send, job)
            except MessageRefusedError as error:
                _log.warning(
                    "dispatcher.message_refused",
                    job=job.job_id,
                    queue=job.queue,
                    reason=str(error),
                )
            else:
                sent.append(job.job_id)

    async def _take_over(self) -> None:
        """Sends messages again that the dispatcher before may have left unsent, once per lease.

        Otherwise their slots would stay unused until the assignments expire.
        """
        if self._known_epoch == self.lease.epoch:
            return
        async with self._database.read() as session:
            assigned = await dispatch_plan.list_unclaimed(session)
        await self._try_to_send(assigned, [])
        self._known_epoch = self.lease.epoch

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[Session]:
        """Yields a session that writes only if this dispatcher still holds the lease."""
        async with self._database.write() as session:
            await self.lease.confirm(session)
            yield session

    async def _end_unsent(self, unsent: Sequence[AssignedJob]) -> None:
        if unsent:
            async with self._write() as session:
                await dispatch_plan.unassign(session, unsent)

    async def _try_tick(self) -> bool:
        try:
            await self.tick()
        except LeaseLostError:
            return True
        except DispatchError as error:
            _log.warning("dispatcher.broker_unreachable", error=str(error))
            return False
        # A failure must not end the daemon: the next round reads the queue anew.
        except Exception:  # noqa: BLE001
            _log.exception("dispatcher.failed")
            return False
        return True

    async def _release(self) -> None:
        """Releases the lease; if the database does not answer, the lease expires."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self.lease.release()
