"""Follows the event log of a server: by its live stream, or by long polls where no stream arrives.

A proxy that collects an answer before it passes it on holds back a stream for ever. The server
sends the first bytes of a stream at once, so a stream that stays silent is replaced by long polls,
which bring the same events after the same cursors.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from palestra.backoff import Backoff
from palestra.connection import MAX_WAIT_SECONDS, RETRIED_STATUSES, Connection
from palestra.contract.answers import read_answer
from palestra.contract.event_streams import EventPollRequest, PolledEvents, SubscriptionRequest
from palestra.contract.queries import EventView
from palestra.errors import EventsLostError, PalestraError, UnexpectedAnswerError

STREAM_SILENCE: Final = 30.0
"""Seconds without data after which a stream counts as lost. The server sends its first bytes at
once, and then something every 15 s."""
POLL_SECONDS: Final = 25.0
POLLING_SECONDS: Final = 600.0
"""Time after which a stream is tried again where only polls got through."""


@dataclass
class _Follower:
    """A scope with the cursor that was reached; `None` begins now."""

    scope: SubscriptionRequest
    cursor: int | None
    has_received: bool = False
    """Whether the present stream has brought anything."""


class EventFeed:
    """The events of one server.

    Args:
        connection: The connection to the server.
        silence: Seconds without data after which a stream counts as lost.
    """

    def __init__(self, connection: Connection, silence: float = STREAM_SILENCE) -> None:
        self._connection = connection
        self._silence = silence
        self._polls_until = 0.0

    def follow(
        self, scope: SubscriptionRequest, after: int | None, *, reconnect: bool = True
    ) -> Iterator[EventView]:
        """Yields events as they happen, without end.

        After a lost connection, the events after the last cursor that was received follow.

        Args:
            scope: The events.
            after: Cursor; `None` begins now.
            reconnect: Whether to reconnect without limit, with growing waits up to 10 s.

        Raises:
            PalestraError: If the server refused, or cannot be reached and `reconnect` is false.
            EventsLostError: If the log no longer holds the events after the cursor.
        """
        follower, backoff = _Follower(scope, after), Backoff(longest=MAX_WAIT_SECONDS)
        while True:
            is_polling = time.monotonic() < self._polls_until
            try:
                for event in self._poll_all(follower) if is_polling else self._stream(follower):
                    backoff.reset()
                    yield event
            except (httpx.TransportError, SSEError) as error:
                is_held_back = isinstance(error, httpx.ReadTimeout) and not follower.has_received
                if is_held_back and not is_polling:
                    self._polls_until = time.monotonic() + POLLING_SECONDS
                    continue
                if not reconnect:
                    raise self._connection.unreachable(error) from None
            except PalestraError as error:
                if not (getattr(error, "status", 0) in RETRIED_STATUSES and reconnect):
                    raise
            if not reconnect:
                return
            self._connection.sleep(backoff.compute_next_wait())

    def poll(
        self, scope: SubscriptionRequest, after: int | None, seconds: float
    ) -> tuple[list[EventView], int]:
        """Returns the next events of a scope and the cursor that they reach.

        Args:
            scope: The events.
            after: Cursor; `None` begins now.
            seconds: Time to wait for the first event.

        Raises:
            PalestraError: If the server refused or cannot be reached.
            EventsLostError: If the log no longer holds the events after the cursor.
        """
        followed = scope.model_copy(update={"after": after})
        asked = EventPollRequest.model_construct(subscriptions=(followed,), wait=seconds)
        answer = self._connection.poll(PolledEvents, "/events:poll", asked, seconds)
        if answer.resync:
            raise EventsLostError(after)
        return [one.event for one in answer.events], answer.cursors[0]

    def _poll_all(self, follower: _Follower) -> Iterator[EventView]:
        while time.monotonic() < self._polls_until:
            wait = 0.0 if follower.cursor is None else POLL_SECONDS
            events, follower.cursor = self.poll(follower.scope, follower.cursor, wait)
            yield from events

    def _stream(self, follower: _Follower) -> Iterator[EventView]:
        scope, follower.has_received = follower.scope, False
        query = {
            "project": scope.project,
            "type": list(scope.types),
            "experiment": list(scope.experiments),
            "run": list(scope.runs),
            "after": follower.cursor,
        }
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if follower.cursor is not None:
            headers["Last-Event-ID"] = str(follower.cursor)
        with self._connection.stream("/events", query, headers, self._silence) as answer:
            for message in EventSource(answer).iter_sse():
                follower.has_received = True
                if message.event == "resync":
                    raise EventsLostError(follower.cursor)
                event = _event(message.data) if message.data else None
                follower.cursor = _read_cursor(message, follower.cursor)
                if event is not None:
                    yield event


def _read_cursor(message: ServerSentEvent, known: int | None) -> int | None:
    return int(message.id) if message.id.isdecimal() else known


def _event(data: str) -> EventView:
    try:
        return read_answer(EventView, data)
    except ValueError:
        raise UnexpectedAnswerError(
            "the event stream holds something that is not an event"
        ) from None
