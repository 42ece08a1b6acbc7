"""Reads the event log once per server process and distributes it to all streams.

Each stream receives only the events that its client may see.

A stream starts without gap or overlap: it is registered first, replays the log from its cursor up
to the hub's position, and then takes later events from its queue. No stream holds a database
session: the hub reads for all streams in short sessions.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from app.bus import Bus
from app.db.engine import EVENTS, Database
from app.db.repositories import events as rows
from app.domain.errors import TooManyRequestsError, UnavailableError
from app.domain.principal import Principal
from app.services.events import frames
from app.services.events.frames import OF_POOLS, LiveEvent
from palestra.contract.permissions import Permission

_log = structlog.get_logger("palestra.live")

PAGE: Final = 500
"""Number of rows per read."""
MAX_REPLAY: Final = 20_000
"""Maximum number of events to replay; beyond it, reloading the history is cheaper."""
ASSURED: Final = 2
"""Streams that each credential may open even if its user has reached the limit per user."""
MAX_QUEUED: Final = 256
"""Maximum number of queued batches of events per stream."""
MAX_QUEUED_BYTES: Final = 8 * 2**20
_LOOK_SECONDS: Final = 1.0
"""Longest time between two reads of the log, since a notification may be lost."""


class ResyncError(Exception):
    """The log cannot be replayed from the client's cursor: the client must reload the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFilter:
    """The events that a stream receives; empty sets of the other members admit all."""

    project_ids: frozenset[str]
    """Projects whose events it receives."""
    pools: frozenset[str] | None = frozenset()
    """Pools whose events, and those of their workers, it receives; `None` for all pools."""
    runs: frozenset[str] = frozenset()
    experiments: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    only_project: str | None = None
    """ID of the project to which the client limited the stream; `None` for all that it may read."""

    def for_caller(self, caller: Principal, pools: frozenset[str] | None) -> "StreamFilter":
        """Returns the filter limited to what a caller may read now.

        Args:
            caller: The caller as it is now.
            pools: The pools that the caller sees; `None` for all.
        """
        readable = caller.projects_with(Permission.PROJECT_READ)
        if self.only_project is not None:
            readable &= {self.only_project}
        return replace(self, project_ids=readable, pools=pools)

    def takes(self, event: LiveEvent) -> bool:
        """Returns whether `event` passes the filter."""
        return (
            self._may_see(event)
            and (not self.types or event.type in self.types)
            and (not self.runs or event.run_id in self.runs)
            and (not self.experiments or event.experiment_id in self.experiments)
        )

    def _may_see(self, event: LiveEvent) -> bool:
        if event.type in OF_POOLS:
            return self.pools is None or event.pool in self.pools
        return event.project_id in self.project_ids


@dataclass(slots=True, eq=False)
class EventSubscription:
    """The queue of one stream.

    Attributes:
        stream_filter: The events that the stream receives, limited to the caller's projects.
        caller: The caller whose credential opened the stream.
        has_overflowed: Whether the client was too slow and events were dropped.
        is_closed: Whether the stream is to end.
    """

    stream_filter: StreamFilter
    caller: Principal
    has_overflowed: bool = False
    is_closed: bool = False
    _queue: deque[list[LiveEvent]] = field(default_factory=deque)
    _bytes: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, events: Sequence[LiveEvent]) -> None:
        """Queues the events that pass the stream's filter.

        Once the queue exceeds its limits, drops all queued events and sets `has_overflowed`.
        """
        wanted = [event for event in events if self.stream_filter.takes(event)]
        if not wanted or self.has_overflowed:
            return
        self._queue.append(wanted)
        self._bytes += sum(len(event.frame) for event in wanted)
        if len(self._queue) > MAX_QUEUED or self._bytes > MAX_QUEUED_BYTES:
            self._queue.clear()
            self.has_overflowed = True
        self._wake.set()

    def close(self) -> None:
        """Ends the stream."""
        self.is_closed = True
        self._wake.set()

    async def take(self, seconds: float) -> list[LiveEvent]:
        """Removes and returns the queued events, waiting at most `seconds` for the first.

        Empty if there was no event, or if the stream was closed.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()
        taken = [event for batch in self._queue for event in batch]
        self._queue.clear()
        self._bytes = 0
        return taken


class EventHub:
    """Distributes live events in one server process. `run` must be active while streams are open.

    Args:
        database: Database of the event log.
        bus: Notifies the hub of new events.
        most: Maximum number of streams of the process.
        most_per_user: Maximum number of streams of one user, over all credentials; each credential
            may always have `ASSURED` of them.
        most_per_credential: Maximum number of streams of one token or login; by default
            `most_per_user`.
    """

    def __init__(
        self,
        database: Database,
        bus: Bus,
        *,
        most: int,
        most_per_user: int,
        most_per_credential: int | None = None,
    ) -> None:
        self._database = database
        self._bus = bus
        self._most = most
        self._most_per_user = most_per_user
        self._most_per_credential = most_per_credential or most_per_user
        self._streams: set[EventSubscription] = set()
        self._position: int | None = None
        self._positioned = asyncio.Event()
        self._wanted = asyncio.Event()
        self._stopping = False

    @contextlib.contextmanager
    def open(self, stream_filter: StreamFilter, caller: Principal) -> Iterator[EventSubscription]:
        """Registers a stream for the time of the context.

        Args:
            stream_filter: The events that the stream receives.
            caller: User of the stream; streams are limited per user and per token or login.

        Raises:
            TooManyRequestsError: If the credential or the user has too many streams.
            UnavailableError: If the process has too many streams, or is shutting down.
        """
        if self._stopping or len(self._streams) >= self._most:
            raise UnavailableError(
                "too_many_streams",
                "The server has no room for another live stream. Try again soon.",
                retry_after=5,
            )
        whose = [
            stream.caller.credential_id
            for stream in self._streams
            if stream.caller.user_id == caller.user_id
        ]
        by_credential = whose.count(caller.credential_id)
        if by_credential >= self._most_per_credential or (
            len(whose) >= self._most_per_user and by_credential >= min(ASSURED, self._most_per_user)
        ):
            message = (
                f"{by_credential} live streams are open with this login or token, {len(whose)} of "
                "this "
                "user. Close a tab or a watch."
            )
            raise TooManyRequestsError("too_many_streams", message, retry_after=5)
        stream = EventSubscription(stream_filter, caller)
        self._streams.add(stream)
        self._wanted.set()
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    async def events(
        self, stream: EventSubscription, after: int | None, seconds: float
    ) -> AsyncIterator[list[LiveEvent]]:
        """Yields the events after a cursor, and an empty list after `seconds` without events.

        Args:
            stream: The stream.
            after: ID of the last event that the client has; `None` starts with the next event.
            seconds: Time without events after which an empty list is yielded.

        Raises:
            ResyncError: If the log cannot be replayed from the cursor, or the client was too slow.
        """
        await self._positioned.wait()
        start = self._position or 0
        if after is not None:
            async for replayed in self._replay(stream.stream_filter, after, start):
                yield replayed
            start = max(start, after)
        while not stream.is_closed:
            taken = [event for event in await stream.take(seconds) if event.id > start]
            if stream.has_overflowed:
                raise ResyncError
            yield taken

    async def run(self) -> None:
        """Reads the log while there are streams, until cancelled."""
        notified = self._bus.subscribe(EVENTS)
        try:
            while True:
                await self._wanted.wait()
                try:
                    await self._serve()
                    await notified.wait(_LOOK_SECONDS)
                # The database may be away; streams wait and go on.
                except Exception as error:  # noqa: BLE001
                    _log.warning("live.read_failed", error=type(error).__name__)
                    await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._bus.unsubscribe(notified)
            self.close()

    @property
    def streams(self) -> Collection[EventSubscription]:
        """The open streams."""
        return tuple(self._streams)

    def close(self) -> None:
        """Closes all streams; `open` then raises `UnavailableError`."""
        self._stopping = True
        for stream in self._streams:
            stream.close()

    async def _serve(self) -> None:
        if not self._streams:
            self._position = None
            self._positioned.clear()
            self._wanted.clear()
            return
        if self._position is None:
            async with self._database.read() as session:
                self._position = await rows.read_newest_id(session)
            self._positioned.set()
        while await self._advance():
            pass

    async def _advance(self) -> bool:
        """Distributes one page of the log; returns whether there may be another page."""
        assert self._position is not None
        async with self._database.read() as session:
            found = await rows.list_after(session, self._position, limit=PAGE)
            events = await frames.expand(session, found)
        if found:
            self._position = found[-1].id
            for stream in self._streams:
                stream.offer(events)
        return len(found) == PAGE

    async def _replay(
        self, stream_filter: StreamFilter, after: int, last: int
    ) -> AsyncIterator[list[LiveEvent]]:
        async with self._database.read() as session:
            oldest, newest = await rows.read_bounds(session)
        if after > newest or after < oldest - 1 or last - after > MAX_REPLAY:
            raise ResyncError
        wanted = rows.EventFilter(
            project_ids=stream_filter.project_ids,
            runs=stream_filter.runs,
            experiments=stream_filter.experiments,
        )
        while after < last:
            async with self._database.read() as session:
                found = await rows.list_between(session, after, last, wanted, limit=PAGE)
                events = await frames.expand(session, found)
            yield [event for event in events if stream_filter.takes(event)]
            after = found[-1].id if len(found) == PAGE else last
