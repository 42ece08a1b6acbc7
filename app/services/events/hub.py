"""Reads the event log once per server process and distributes it to all streams.

Each stream receives only the events that its client may see.

A stream starts without gap or overlap: it is registered first, replays the log from its cursors up
to the hub's position, and then takes later events from its queue. No stream holds a database
session: the hub reads for all streams in short sessions, at most once per `TICK_SECONDS`.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from typing import Final

import structlog

from app.bus import Bus
from app.db.engine import EVENTS, Database
from app.db.repositories import events as rows
from app.domain.errors import TooManyRequestsError, UnavailableError
from app.domain.principal import Principal
from app.services.events import frames
from app.services.events.filters import EventKey, StreamFilter
from app.services.events.groups import StreamGroups
from app.services.events.subscriptions import EventBatch, EventSubscription

_log = structlog.get_logger("palestra.live")

PAGE: Final = 500
"""Number of rows per read."""
REPLAY_PAGE: Final = 200
MAX_REPLAY: Final = 20_000
"""Maximum number of events to replay for one filter; beyond it, reloading the history is
cheaper."""
MAX_SCAN: Final = 500_000
"""Maximum number of rows of the log among which a replay searches."""
ASSURED: Final = 2
"""Streams that each credential may open even if its user has reached the limit per user."""
TICK_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 5
_LOOK_SECONDS: Final = 1.0
"""Longest time between two reads of the log, since a notification may be lost."""
_REPLAYS: Final = 8
"""Replays that read at the same time, for example after a restart of the server."""


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
        tick_seconds: Least time between two reads of the log: events that come meanwhile are sent
            together.
    """

    def __init__(
        self,
        database: Database,
        bus: Bus,
        *,
        most: int,
        most_per_user: int,
        most_per_credential: int | None = None,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        self._database = database
        self._bus = bus
        self._most = most
        self._most_per_user = most_per_user
        self._most_per_credential = most_per_credential or most_per_user
        self._tick_seconds = tick_seconds
        self._groups = StreamGroups()
        self._position: int | None = None
        """ID of the newest event that was read: streams that begin now replay up to it."""
        self._offered = 0
        """ID of the newest event that was queued at all streams that take it."""
        self._positioned = asyncio.Event()
        self._wanted = asyncio.Event()
        self._replaying = asyncio.Semaphore(_REPLAYS)
        self._stopping = False

    @contextlib.contextmanager
    def open(
        self, filters: Sequence[StreamFilter], caller: Principal, *, numbered: bool = False
    ) -> Iterator[EventSubscription]:
        """Registers a stream for the time of the context.

        Args:
            filters: The events that the stream receives: those that any filter takes.
            caller: User of the stream; streams are limited per user and per token or login.
            numbered: Whether frames name the filters that took the event.

        Raises:
            TooManyRequestsError: `too_many_streams` of the credential or of the user.
            UnavailableError: `server_streams_full`, or `server_stopping`.
        """
        self._check_room(caller)
        stream = EventSubscription(tuple(filters), caller, numbered)
        self._groups.add(stream)
        self._wanted.set()
        try:
            yield stream
        finally:
            self._groups.discard(stream)

    def _check_room(self, caller: Principal) -> None:
        if self._stopping:
            raise UnavailableError(
                "server_stopping",
                "The server is shutting down. Try again when it has started.",
                retry_after=RETRY_SECONDS,
            )
        if len(self._groups) >= self._most:
            message = (
                f"The server has its {self._most} live streams (PALESTRA_SSE_STREAMS). Try again "
                "soon."
            )
            raise UnavailableError("server_streams_full", message, retry_after=RETRY_SECONDS)
        whose = [
            stream.caller.credential_id
            for stream in self._groups
            if stream.caller.user_id == caller.user_id
        ]
        by_credential = whose.count(caller.credential_id)
        if by_credential >= self._most_per_credential or (
            len(whose) >= self._most_per_user and by_credential >= min(ASSURED, self._most_per_user)
        ):
            message = (
                f"{by_credential} live streams are open with this login or token, {len(whose)} of "
                "this user. Close a browser or a program that watches."
            )
            raise TooManyRequestsError("too_many_streams", message, retry_after=RETRY_SECONDS)

    async def events(
        self,
        stream: EventSubscription,
        after: Sequence[int | None],
        seconds: float,
        *,
        announced: bool = False,
    ) -> AsyncGenerator[list[EventBatch]]:
        """Yields the events after the cursors, and an empty list after `seconds` without events.

        Does not yield the events that `stream.write_now` writes.

        `stream.cursors` holds the cursors that the yielded events reach. A delivery with numbers in
        `resync` says that the events of these filters cannot be replayed, or that the client was
        too slow; after the latter the stream ends.

        Args:
            stream: The stream.
            after: For each filter, the ID of the last event that the client has; `None` starts with
                the next event.
            seconds: Time without events after which an empty list is yielded.
            announced: Whether an empty list is yielded first, as `stream.cursors` are known.
        """
        await self._positioned.wait()
        start = self._position or 0
        stream.cursors = [start if one is None else one for one in after]
        floors = [max(start, one) for one in stream.cursors]
        if announced:
            yield []
        for number in range(len(floors)):
            async for delivery in self._replay(stream, number, start):
                yield [delivery]
        stream.floor = max(floors)
        while not stream.is_closed:
            taken = [one.after(floors) for one in await stream.take(seconds)]
            if stream.has_overflowed:
                yield [EventBatch((), resync=tuple(range(len(floors))))]
                return
            stream.cursors = [max(floor, self._offered) for floor in floors]
            yield [one for one in taken if one.parts]

    async def run(self) -> None:
        """Reads the log while there are streams, until cancelled."""
        notified = self._bus.subscribe(EVENTS)
        try:
            while True:
                await self._wanted.wait()
                began = time.monotonic()
                try:
                    await self._serve()
                    await notified.wait(_LOOK_SECONDS)
                    await asyncio.sleep(began + self._tick_seconds - time.monotonic())
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
        return tuple(self._groups)

    @property
    def offered_to(self) -> int:
        """ID of the newest event that all streams which take it have in their queues."""
        return self._offered

    def limit(self, stream: EventSubscription, filters: tuple[StreamFilter, ...]) -> None:
        """Replaces the filters of a stream by others of the same number."""
        self._groups.change(stream, filters)

    def close(self) -> None:
        """Closes all streams; `open` then raises `UnavailableError`."""
        self._stopping = True
        for stream in self._groups:
            stream.close()

    async def _serve(self) -> None:
        if not len(self._groups):
            self._position = None
            self._positioned.clear()
            self._wanted.clear()
            return
        if self._position is None:
            async with self._database.read() as session:
                self._position = self._offered = await rows.read_newest_id(session)
            self._positioned.set()
        while await self._advance():
            pass

    async def _advance(self) -> bool:
        """Distributes one page of the log; returns whether there may be another page.

        The position moves before the content is read: a stream that begins meanwhile replays this
        page. Events that no stream takes are not read any further.
        """
        assert self._position is not None
        before = self._position
        async with self._database.read() as session:
            found = await rows.list_after(session, before, limit=PAGE)
            if not found:
                return False
            self._position = found[-1].id
            wanted = [row for row in found if self._groups.is_wanted(EventKey.of(row))]
            try:
                events = await frames.expand(session, wanted)
            except BaseException:
                self._position = before
                raise
        self._groups.offer(events)
        self._offered = self._position
        return len(found) == PAGE

    async def _replay(
        self, stream: EventSubscription, number: int, last: int
    ) -> AsyncGenerator[EventBatch]:
        """Yields the events of one filter between its cursor and `last`."""
        if stream.cursors[number] >= last and not await self._is_unknown(stream.cursors[number]):
            return
        wanted = _find_rows(stream.filters[number])
        if not await self._can_replay(stream.cursors[number], last, wanted):
            stream.cursors[number] = last
            yield EventBatch((), numbered=stream.numbered, resync=(number,))
            return
        while stream.cursors[number] < last and not stream.is_closed:
            async with self._replaying, self._database.read() as session:
                found = await rows.list_between(
                    session, stream.cursors[number], last, wanted, limit=REPLAY_PAGE
                )
                events = await frames.expand(session, found)
            # The caller's rights may have changed meanwhile.
            parts = [(one, (number,)) for one in events if stream.filters[number].takes(one.key)]
            stream.cursors[number] = found[-1].id if len(found) == REPLAY_PAGE else last
            if parts:
                yield EventBatch(parts, numbered=stream.numbered)

    async def _is_unknown(self, cursor: int) -> bool:
        """Returns whether the log has not reached a cursor."""
        if cursor <= (self._position or 0):
            return False
        async with self._database.read() as session:
            return cursor > await rows.read_newest_id(session)

    async def _can_replay(self, after: int, last: int, wanted: rows.EventFilter) -> bool:
        async with self._replaying, self._database.read() as session:
            oldest, newest = await rows.read_bounds(session)
            if not oldest - 1 <= after <= newest or last - after > MAX_SCAN:
                return False
            if last - after <= MAX_REPLAY:
                return True
            most = MAX_REPLAY + 1
            return await rows.count_between(session, after, last, wanted, most=most) < most


def _find_rows(stream_filter: StreamFilter) -> rows.EventFilter:
    return rows.EventFilter(
        project_ids=stream_filter.project_ids,
        runs=stream_filter.runs,
        experiments=stream_filter.experiments,
        types=stream_filter.types,
    )
