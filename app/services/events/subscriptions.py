"""The queue of one stream, and the deliveries that all streams of the same filters share."""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.domain.principal import Principal
from app.services.events.filters import EventKey, StreamFilter
from app.services.events.frames import LiveEvent

MAX_QUEUED_EVENTS: Final = 4_096
"""Maximum number of queued events per stream."""
MAX_QUEUED_BYTES: Final = 8 * 2**20
COALESCE_AT: Final = 8
"""Queued deliveries from which a stream counts as slow: of each resource, only the newest event
stays queued."""

Part = tuple[LiveEvent, tuple[int, ...]]
"""An event with the numbers of the filters that take it."""


class EventBatch:
    """Events in the order of their IDs; the bytes are encoded once for all receiving streams.

    Args:
        parts: The events.
        numbered: Whether each frame begins with the numbers of its filters.
        resync: Numbers of the filters whose events cannot be replayed.
    """

    __slots__ = ("_chunk", "_content", "_numbered", "parts", "resync", "size")

    def __init__(
        self, parts: Sequence[Part], *, numbered: bool = False, resync: tuple[int, ...] = ()
    ) -> None:
        self.parts = parts
        self.resync = resync
        self.size = sum(len(event.frame) for event, _ in parts)
        self._numbered = numbered
        self._content: bytes | None = None
        self._chunk: bytes | None = None

    @property
    def events(self) -> list[LiveEvent]:
        """The events without their numbers."""
        return [event for event, _ in self.parts]

    @property
    def content(self) -> bytes:
        """The frames as a stream sends them."""
        if self._content is None:
            self._content = b"".join(self._yield_frames())
        return self._content

    @property
    def chunk(self) -> bytes:
        """The frames as a chunk of HTTP's transfer coding (RFC 9112, section 7.1)."""
        if self._chunk is None:
            self._chunk = b"%x\r\n%b\r\n" % (len(self.content), self.content)
        return self._chunk

    def _yield_frames(self) -> Iterable[bytes]:
        for event, numbers in self.parts:
            if self._numbered:
                yield b"data: %s\n" % ",".join(map(str, numbers)).encode()
            yield event.frame

    def after(self, floors: Sequence[int]) -> "EventBatch":
        """Returns the events that lie above the floors of their filters."""
        if not self.parts or self.parts[0][0].id > max(floors):
            return self
        kept = (
            (event, tuple(number for number in numbers if event.id > floors[number]))
            for event, numbers in self.parts
        )
        return EventBatch([part for part in kept if part[1]], numbered=self._numbered)


def coalesce(deliveries: Iterable[EventBatch], *, numbered: bool) -> EventBatch:
    """Returns the events of deliveries without those that a newer event of a resource replaces.

    Points, log lines, evaluations and statistics are all kept.
    """
    parts = [part for one in deliveries for part in one.parts]
    newest = {event.resource: event.id for event, _ in parts}
    return EventBatch(
        [
            part
            for part in parts
            if part[0].resource is None or newest[part[0].resource] == part[0].id
        ],
        numbered=numbered,
    )


def match(filters: Sequence[StreamFilter], event: EventKey) -> tuple[int, ...]:
    """Returns the numbers of the filters that take an event."""
    return tuple(number for number, one in enumerate(filters) if one.takes(event))


@dataclass(slots=True, eq=False)
class EventSubscription:
    """The queue of one stream.

    Attributes:
        filters: The events that the stream receives, limited to the caller's projects.
        caller: The caller whose credential opened the stream.
        numbered: Whether the stream says of each event which filters took it.
        cursors: The cursor that each filter has reached with what was taken from the queue.
        has_overflowed: Whether the client was too slow and events were dropped.
        is_closed: Whether the stream is to end.
        write_now: Writes a chunk to the client without waiting, and returns whether it did. Used
            while the task of the stream waits in `take`, so that it need not wake for each
            delivery; `None` queues all of them.
        floor: ID of an event up to which the stream's replay has sent the events of all filters:
            deliveries that begin above it need no comparison with the cursors.
        clock: Returns seconds that never go backwards.
    """

    filters: tuple[StreamFilter, ...]
    caller: Principal
    numbered: bool = False
    cursors: list[int] = field(default_factory=list)
    has_overflowed: bool = False
    is_closed: bool = False
    write_now: Callable[[bytes], bool] | None = None
    floor: int = 0
    clock: Callable[[], float] = time.monotonic
    _is_waiting: bool = False
    """Whether all that was taken has been sent, so that a delivery may be written now."""
    _written_at: float = -math.inf
    _queue: deque[EventBatch] = field(default_factory=deque)
    _bytes: int = 0
    _count: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, delivery: EventBatch) -> None:
        """Writes a delivery to a client that has everything before it, or queues it.

        Of a slow client's queue, events that newer ones replace are removed. Once the queue
        exceeds its limits all the same, drops all queued events and sets `has_overflowed`.
        """
        if self.has_overflowed or self._has_written(delivery):
            return
        self._queue.append(delivery)
        self._bytes += delivery.size
        self._count += len(delivery.parts)
        is_large = self._bytes > MAX_QUEUED_BYTES or self._count > MAX_QUEUED_EVENTS
        if len(self._queue) > COALESCE_AT or (is_large and len(self._queue) > 1):
            self._replace([coalesce(self._queue, numbered=self.numbered)])
        if self._bytes > MAX_QUEUED_BYTES or self._count > MAX_QUEUED_EVENTS:
            self._replace([])
            self.has_overflowed = True
        self._wake.set()

    @property
    def queued(self) -> int:
        """Number of events in the queue."""
        return self._count

    def _has_written(self, delivery: EventBatch) -> bool:
        if (
            not self._is_waiting
            or self._queue
            or self.is_closed
            or self.write_now is None
            or delivery.parts[0][0].id <= self.floor
            or not self.write_now(delivery.chunk)
        ):
            return False
        self._written_at = self.clock()
        return True

    def close(self) -> None:
        """Ends the stream."""
        self.is_closed = True
        self._wake.set()

    async def take(self, seconds: float) -> list[EventBatch]:
        """Removes and returns the queued deliveries, waiting for the first.

        Empty if there was none and nothing was written in `seconds`, or if the stream was closed.
        """
        self._is_waiting = True
        end = self.clock() + seconds
        while not self._wake.is_set() and (rest := end - self.clock()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._wake.wait()
            end = max(end, self._written_at + seconds)
        self._is_waiting = False
        self._wake.clear()
        taken = list(self._queue)
        self._replace([])
        return taken

    def _replace(self, deliveries: Sequence[EventBatch]) -> None:
        self._queue = deque(deliveries)
        self._bytes = sum(one.size for one in deliveries)
        self._count = sum(len(one.parts) for one in deliveries)
