"""The live hub: reads the event log once per process and distributes it to all streams.

Each stream receives only the events that its client may see.

A stream joins without gap or overlap: it is registered first, replays the log from its cursor up to
the hub's position, and then takes from its queue what lies beyond. No stream holds a database
session; one short session serves all.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from app.bus import Bus
from app.db.engine import EVENTS, Database
from app.db.repositories import events as rows
from app.domain.errors import TooManyRequestsError, UnavailableError
from app.services.events import frames
from app.services.events.frames import LiveEvent

_log = structlog.get_logger("palestra.live")

PAGE: Final = 500
"""Rows of one read."""
MAX_REPLAY: Final = 20_000
"""Rows that a stream may be behind; beyond that, loading the history anew is cheaper."""
ASSURED: Final = 2
"""Streams that a credential may have although its user's others hold all that the user may have."""
MAX_QUEUED: Final = 256
"""Deliveries that wait for a slow client."""
MAX_QUEUED_BYTES: Final = 8 * 2**20
_LOOK_SECONDS: Final = 1.0
"""A notification may be lost: the hub reads the log at least this often."""


class ResyncError(Exception):
    """The log no longer leads from the client's cursor to now: it must load the history again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFilter:
    """The events of a project that a stream receives; empty sets admit all."""

    project_id: str
    runs: frozenset[str] = frozenset()
    experiments: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    def takes(self, event: LiveEvent) -> bool:
        """Returns whether the stream shall see `event`."""
        return (
            event.project_id in {None, self.project_id}
            and (not self.types or event.type in self.types)
            and (not self.runs or event.run_id in self.runs)
            and (not self.experiments or event.experiment_id in self.experiments)
        )


@dataclass(slots=True, eq=False)
class EventSubscription:
    """One client's place in the hub. `closed` ends it; `overflowed` says that it was too slow."""

    stream_filter: StreamFilter
    user_id: str
    credential: str = ""
    overflowed: bool = False
    closed: bool = False
    _queue: deque[list[LiveEvent]] = field(default_factory=deque)
    _bytes: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, events: Sequence[LiveEvent]) -> None:
        """Queues what the stream wants of `events`.

        Drops everything once the client is too far behind.
        """
        wanted = [event for event in events if self.stream_filter.takes(event)]
        if not wanted or self.overflowed:
            return
        self._queue.append(wanted)
        self._bytes += sum(len(event.frame) for event in wanted)
        if len(self._queue) > MAX_QUEUED or self._bytes > MAX_QUEUED_BYTES:
            self._queue.clear()
            self.overflowed = True
        self._wake.set()

    def close(self) -> None:
        """Ends the stream."""
        self.closed = True
        self._wake.set()

    async def take(self, seconds: float) -> list[LiveEvent]:
        """Returns what is queued, waiting for at most `seconds`.

        Empty if nothing came or the stream ended.
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
    """The live events of one server process. `run` must be running while streams are open.

    Args:
        database: Where the log is.
        bus: Rings when the log grew.
        most: Streams of the process.
        most_per_user: Streams of one user, over all credentials; each credential may have `ASSURED`
            whatever the others hold.
        most_per_credential: Streams of one token or login; as many as its user by default.
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
    def open(
        self, stream_filter: StreamFilter, user_id: str, credential: str = ""
    ) -> Iterator[EventSubscription]:
        """Registers a stream.

        Args:
            stream_filter: What it takes.
            user_id: Whose it is.
            credential: Id of the token or login that asks for it: none can use up what the user's
                others need.

        Raises:
            TooManyRequestsError: If the credential or the user has too many.
            UnavailableError: If the process has too many, or stops.
        """
        if self._stopping or len(self._streams) >= self._most:
            raise UnavailableError(
                "too_many_streams",
                "The server has no room for another live stream. Try again soon.",
                retry_after=5,
            )
        whose = [stream.credential for stream in self._streams if stream.user_id == user_id]
        by_credential = whose.count(credential)
        if by_credential >= self._most_per_credential or (
            len(whose) >= self._most_per_user and by_credential >= min(ASSURED, self._most_per_user)
        ):
            message = (
                f"{by_credential} live streams are open with this login or token, {len(whose)} of "
                "this "
                "user. Close a tab or a watch."
            )
            raise TooManyRequestsError("too_many_streams", message, retry_after=5)
        stream = EventSubscription(stream_filter, user_id, credential)
        self._streams.add(stream)
        self._wanted.set()
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    async def events(
        self, stream: EventSubscription, after: int | None, seconds: float
    ) -> AsyncIterator[list[LiveEvent]]:
        """Yields the stream's events after a cursor, and an empty list after `seconds` without any.

        Args:
            stream: The stream.
            after: Its cursor; `None` begins with what comes next.
            seconds: Time between two signs of life.

        Raises:
            ResyncError: If the log does not lead on from the cursor, or the client was too slow.
        """
        await self._positioned.wait()
        start = self._position or 0
        if after is not None:
            async for replayed in self._replay(stream.stream_filter, after, start):
                yield replayed
            start = max(start, after)
        while not stream.closed:
            taken = [event for event in await stream.take(seconds) if event.id > start]
            if stream.overflowed:
                raise ResyncError
            yield taken

    async def run(self) -> None:
        """Reads the log for as long as there is a stream, until cancelled."""
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

    def close(self) -> None:
        """Ends all streams and opens no more."""
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
                self._position = await rows.newest(session)
            self._positioned.set()
        while await self._advance():
            pass

    async def _advance(self) -> bool:
        """Delivers one page; returns whether there may be another."""
        assert self._position is not None
        async with self._database.read() as session:
            found = await rows.after(session, self._position, limit=PAGE)
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
            oldest, newest = await rows.bounds(session)
        if after > newest or after < oldest - 1 or last - after > MAX_REPLAY:
            raise ResyncError
        wanted = rows.EventFilter(
            project_id=stream_filter.project_id,
            runs=stream_filter.runs,
            experiments=stream_filter.experiments,
        )
        while after < last:
            async with self._database.read() as session:
                found = await rows.between(session, after, last, wanted, limit=PAGE)
                events = await frames.expand(session, found)
            yield [event for event in events if stream_filter.takes(event)]
            after = found[-1].id if len(found) == PAGE else last
