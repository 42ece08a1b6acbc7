"""Commits telemetry batches that arrive together in one transaction, with one fsync.

A batch never waits for others: those that arrive while a transaction is committed form the next
group. `Intake` acknowledges only committed batches. A refused batch does not affect the others,
since it is refused before anything is written. If the transaction fails, each batch is committed in
a transaction of its own, so that one bad batch does not fail the others. If that fails because of
the content of a record, the batch is refused and the error names the record; otherwise the sender
is asked to send the batch again.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from app.db import faults
from app.db.engine import Database
from app.domain.errors import DomainError, InvalidError, StorageFullError, UnavailableError
from app.services.telemetry import batches
from app.services.telemetry.batches import Delivery
from app.services.telemetry.tail_limit import TailLimit

_log = structlog.get_logger("palestra.ingest")

MAX_GROUP: Final = 64
"""Batches of one transaction."""
MAX_WAITING: Final = 512
"""Batches that may wait; more are refused as `busy`, and the sender's spool keeps the data."""


class Acknowledger(Protocol):
    """Accepts batches and returns once they are committed."""

    async def take(self, delivery: Delivery) -> int:
        """Returns the attempt's last committed sequence number, once the batch is committed.

        Raises:
            DomainError: If the batch is refused; none of its records was stored.
        """


@dataclass(slots=True)
class _Waiting:
    delivery: Delivery
    answer: "asyncio.Future[int]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Intake:
    """The group commit of one process. `run` must be running while `take` is called.

    Args:
        database: Where to write.
        tails: Limit of the batches that wait for the compactor; the usual one by default.
    """

    def __init__(self, database: Database, tails: TailLimit | None = None) -> None:
        self._database = database
        self._tails = tails or TailLimit(database)
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(MAX_WAITING)
        self._group: list[_Waiting] = []

    async def take(self, delivery: Delivery) -> int:
        """See `Acknowledger.take`."""
        self._tails.check(delivery.run_ids)
        waiting = _Waiting(delivery)
        try:
            self._queue.put_nowait(waiting)
        except asyncio.QueueFull:
            raise UnavailableError(
                "busy",
                "More telemetry waits than the server can take. Try again soon.",
                retry_after=1,
            ) from None
        return await waiting.answer

    async def run(self) -> None:
        """Commits groups until cancelled; then fails the waiting batches with status 503."""
        counting = asyncio.create_task(self._tails.run())
        try:
            while True:
                await self._gather()
                await self._commit(self._group)
                self._group.clear()
        finally:
            counting.cancel()
            while not self._queue.empty():
                self._group.append(self._queue.get_nowait())
            for waiting in self._group:
                _refuse(
                    waiting,
                    UnavailableError(
                        "stopping", "The server is stopping. Send the batch again.", retry_after=1
                    ),
                )

    async def _gather(self) -> None:
        self._group.append(await self._queue.get())
        while len(self._group) < MAX_GROUP and not self._queue.empty():
            self._group.append(self._queue.get_nowait())

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        live = [waiting for waiting in group if not waiting.answer.cancelled()]
        try:
            await self._commit_together(live)
        except StorageFullError as error:
            for waiting in live:
                _refuse(waiting, error)
        except Exception as error:  # noqa: BLE001 - whatever it was, each batch is tried alone
            _log.warning("ingest.group_failed", batches=len(live), error=type(error).__name__)
            for waiting in live:
                await self._commit_alone(waiting)

    async def _commit_together(self, group: Sequence[_Waiting]) -> None:
        """Writes a group of batches in one transaction.

        Refusals come before the first write and leave the transaction intact; any other error
        aborts the whole group.
        """
        answers: list[tuple[_Waiting, int | DomainError]] = []
        async with self._database.write() as session:
            for some in _split_by_attempt(group):
                deliveries = [waiting.delivery for waiting in some]
                answers += zip(some, await batches.take_group(session, deliveries), strict=True)
        for waiting, answer in answers:
            if isinstance(answer, DomainError):
                _refuse(waiting, answer)
                continue
            self._tails.add(waiting.delivery.run_ids)
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _commit_alone(self, waiting: _Waiting) -> None:
        try:
            await self._commit_together([waiting])
        except DomainError as refusal:
            _refuse(waiting, refusal)
        except Exception as error:  # noqa: BLE001 - the loop goes on
            _log.exception(
                "ingest.batch_failed",
                attempt_id=waiting.delivery.attempt_id,
                error=type(error).__name__,
            )
            _refuse(waiting, await self._explain(waiting.delivery, error))

    async def _explain(self, delivery: Delivery, error: Exception) -> DomainError:
        """Returns the error with which a failed batch is answered.

        The error asks the sender to try again, or names the record that can never be stored.
        """
        later = UnavailableError(
            "storage", "The server could not store the batch. Send it again.", retry_after=1
        )
        if not faults.depends_on_content(error):
            return later
        try:
            index = await self._first_unstorable(delivery)
        except DomainError as refusal:
            return refusal
        # Something else failed meanwhile: the answer is still right for the next try.
        except Exception:  # noqa: BLE001
            return later
        message = (
            "The server can never store this record. Send the others, and a note in its place."
        )
        return InvalidError("unstorable_record", message, pointer=f"/records/{index}")

    async def _first_unstorable(self, delivery: Delivery) -> int:
        """Finds the index of the first record that cannot be stored, by bisection.

        Every trial transaction is rolled back.
        """
        low, high = 0, len(delivery.records) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (middle + 1, high)
                if await self._is_storable(delivery.prefix(middle + 1))
                else (low, middle)
            )
        return low

    async def _is_storable(self, delivery: Delivery) -> bool:
        try:
            async with self._database.trial() as session:
                await batches.take(session, delivery)
        except Exception as error:
            if isinstance(error, DomainError) or not faults.depends_on_content(error):
                raise
            return False
        return True


def _split_by_attempt(group: Sequence[_Waiting]) -> list[list[_Waiting]]:
    """Returns groups in which each attempt has one batch; those of an attempt keep their order."""
    rounds: list[list[_Waiting]] = []
    number: Counter[str] = Counter()
    for waiting in group:
        attempt_id = waiting.delivery.attempt_id
        if number[attempt_id] == len(rounds):
            rounds.append([])
        rounds[number[attempt_id]].append(waiting)
        number[attempt_id] += 1
    return rounds


def _refuse(waiting: _Waiting, reason: DomainError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(reason)
