"""Limits below HTTP: number of connections, duration of a request, size of its head.

uvicorn bounds none of it for httptools. When the limit is reached, a new connection replaces the
one that has waited longest for its request, so that idle clients cannot exclude others. Event
streams and slow uploads are permitted: only silence and a rate below `MIN_RATE` end a connection.
"""

import asyncio
import contextlib
import resource
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, Literal

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.client_presence import ClientPresence
from app.direct_answers import offer_direct_answer
from app.domain.networks import Network, contains
from app.domain.request_ids import new_request_id
from app.settings import Settings

_log = structlog.get_logger("palestra.connections")

MAX_URL: Final = 16_384
MAX_HEAD: Final = 65_536
"""Upper bound on the bytes of a request's line and headers."""
MAX_HEADERS: Final = 100
WINDOW_SECONDS: Final = 20.0
MIN_RATE: Final = 512
"""Least rate in bytes per second, over a window.

It applies to the body that a client sends and to the answer that it reads.
"""
STALLED_SECONDS: Final = 12.0
"""Time in which a client must acknowledge some of the bytes that are under way to it.

A client with small buffers that reads slowly but steadily is ended, too, where its window opens by
less than a segment at a time: below some 10 kB/s with a buffer of 16 KiB on a loopback connection.
"""
LINGER_SECONDS: Final = 2.0
"""Seconds in which the rest of a body may arrive after its answer was sent.

A client whose connection is closed while it sends often loses the answer.
"""
_LOOK_SECONDS: Final = 1.0
_RESERVE: Final = 128
"""File descriptors reserved for the database, the stored files, the broker and the bus."""
_MAX_DESCRIPTORS: Final = 65_536

Phase = Literal["head", "body", "answer", "idle"]

_REASONS: Final = {
    408: ("Request Timeout", "too_slow", "The request came in too slowly. Send it again."),
    414: (
        "URI Too Long",
        "url_too_long",
        f"The address has more than {MAX_URL} bytes. Ask for less.",
    ),
    431: (
        "Request Header Fields Too Large",
        "headers_too_large",
        f"The headers have more than {MAX_HEAD} bytes, or are more than {MAX_HEADERS}. Send fewer.",
    ),
    503: (
        "Service Unavailable",
        "too_many_connections",
        "The server has no room for another connection. Try again soon.",
    ),
}


def end_stalled_clients(listener: socket.socket, seconds: float = STALLED_SECONDS) -> None:
    """Lets the system end connections whose clients acknowledge nothing of what is sent to them.

    The buffers of two systems hold the answer of a client that reads no more for minutes where
    little is sent, as on most event streams. Linux ends such a connection; other systems do not.

    Args:
        listener: The listening socket. Connections that it accepts afterwards inherit the time.
        seconds: The time.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))


def raise_descriptor_limit() -> int:
    """Raises the soft limit of open file descriptors as far as permitted; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


@dataclass(eq=False)
class Connections:
    """The open connections of a server and their bounds.

    Args:
        most: Largest number of connections.
        most_per_address: Largest number from one address, unless it is a trusted proxy.
        backlog: Size of the system's queue of connections: all of them are accepted before any
            connection is refused.
        proxies: Networks of the proxies that are trusted.
        head_seconds: Time for a request's line and headers, and for a new connection's first byte.
        clock: Returns seconds that never go backwards.
    """

    most: int
    most_per_address: int
    backlog: int = 128
    proxies: tuple[Network, ...] = ()
    head_seconds: float = 20.0
    clock: Callable[[], float] = time.monotonic
    open: dict["BoundedProtocol", str] = field(default_factory=dict)
    refused: int = 0
    _of_address: Counter[str] = field(default_factory=Counter)
    _looking: bool = False

    @classmethod
    def from_settings(cls, settings: Settings, descriptors: int) -> "Connections":
        """Returns the bounds for the settings and the limit on file descriptors.

        A quarter of the descriptors, at least 128, is reserved for other uses.
        """
        room = max(16, descriptors - max(_RESERVE, descriptors // 4))
        most = min(settings.max_connections or room, room)
        per_address = settings.max_connections_per_address or max(1, most // 2)
        backlog = max(32, min(2_048, (descriptors - most) // 2))
        return cls(
            most, per_address, backlog, settings.proxy_networks, settings.request_head_seconds
        )

    def admit(self, connection: "BoundedProtocol", address: str) -> bool:
        """Registers a connection.

        At the limit, a connection that waits for its request is closed in its favour. Returns
        false if there is no such connection.
        """
        if self._of_address[address] >= self.most_per_address and not self._is_proxy(address):
            if not self._end_oldest(lambda other: self.open[other] == address):
                return self._refuse(address)
        elif len(self.open) >= self.most and not self._end_oldest(lambda _: True):
            return self._refuse(address)
        self.open[connection] = address
        self._of_address[address] += 1
        self._keep_looking(connection.loop)
        return True

    def leave(self, connection: "BoundedProtocol") -> None:
        """Removes a closed connection."""
        address = self.open.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def end_overdue(self) -> None:
        """Closes the connections whose clients are too slow by now."""
        now = self.clock()
        for connection in tuple(self.open):
            connection.end_if_overdue(now, self.head_seconds)

    def _is_proxy(self, address: str) -> bool:
        return bool(address) and contains(self.proxies, ip_address(address.partition("%")[0]))

    def _end_oldest(self, chosen: Callable[["BoundedProtocol"], bool]) -> bool:
        waiting = [one for one in self.open if one.phase in {"head", "idle"} and chosen(one)]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda one: (one.phase == "idle", one.since))
        self.leave(oldest)
        oldest.transport.abort()
        return True

    def _refuse(self, address: str) -> bool:
        if not self.refused % 1_000:
            _log.warning(
                "connections.refused",
                address=address,
                open=len(self.open),
                refused=self.refused + 1,
            )
        self.refused += 1
        return False

    def _keep_looking(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._looking:
            self._looking = True
            loop.call_later(_LOOK_SECONDS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = False
        self.end_overdue()
        if self.open:
            self._keep_looking(loop)


class ChunkedAnswer:
    """The connection to which an answer is sent; see `DirectAnswer`.

    Args:
        cycle: The request and its answer as uvicorn has them.
    """

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def write(self, chunk: bytes) -> bool:
        """Writes a chunk if the client keeps up with an answer that is sent in chunks."""
        cycle = self._cycle
        if (
            cycle.flow.write_paused
            or cycle.transport.is_closing()
            or cycle.response_complete
            or not (cycle.response_started and cycle.chunked_encoding)
        ):
            return False
        cycle.transport.write(chunk)
        return True


class BoundedProtocol(HttpToolsProtocol):
    """The protocol of one connection.

    `phase` is what the connection waits for, `since` the time at which that phase began.
    """

    bounds: Connections

    phase: Phase = "head"
    since: float = 0.0
    _head_bytes = 0
    _unread = 0
    _moved = 0
    _unsent = 0
    _ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accepts the connection, or answers 503 and closes it."""
        super().connection_made(transport)
        self._client = ClientPresence()
        self._enter("head")
        if not self.bounds.admit(self, self.client[0] if self.client else ""):
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection from the counted connections, and ends what it reads."""
        self.bounds.leave(self)
        super().connection_lost(exc)
        self._client.leave()

    def data_received(self, data: bytes) -> None:
        """Feeds the parser; refuses a head that exceeds the limit before it is complete.

        The parser reads first, so that an address that is too long is named as the cause.
        """
        if self._ended:
            return
        if self.phase == "idle":
            self._enter("head")
        if self.phase == "head":
            self._unread += len(data)
        super().data_received(data)
        if self.phase == "head" and self._unread > MAX_HEAD and not self.transport.is_closing():
            self._refuse(431)

    def resume_writing(self) -> None:
        """Records that the client has read the buffered part of the answer."""
        self._unsent = 0
        super().resume_writing()

    def on_message_begin(self) -> None:
        """Resets the size of the head for the next request."""
        super().on_message_begin()
        self._head_bytes = 0
        if self.phase != "head":
            self._enter("head")

    def on_url(self, url: bytes) -> None:
        """Refuses a request whose address exceeds the limit."""
        super().on_url(url)
        if len(self.url) > MAX_URL:
            self._refuse(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuses a request whose headers or trailers exceed the limits."""
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes + len(self.url) > MAX_HEAD or len(self.headers) >= MAX_HEADERS:
            self._refuse(431)
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Starts the request."""
        self._unread = 0
        if not self._ended:
            self._enter("body")
            super().on_headers_complete()
            scope: Any = self.cycle.scope
            offer_direct_answer(scope, ChunkedAnswer(self.cycle))
            self._client.offer(scope)

    def on_body(self, body: bytes) -> None:
        """Passes a part of the body on to the request."""
        if not self._ended:
            self._moved += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Records that the request is complete."""
        if not self._ended:
            self._enter("answer")
            super().on_message_complete()
            if self.cycle is not None and self.cycle.response_complete and not self.pipeline:
                self._enter("idle")

    def on_response_complete(self) -> None:
        """Starts the timeout for the next request, or for the rest of an unread request body."""
        super().on_response_complete()
        if self.phase == "answer" and not self.pipeline:
            self._enter("idle")
        elif self.phase == "body":
            self.loop.call_later(LINGER_SECONDS, self._end_lingering, self.cycle)

    def end_if_overdue(self, now: float, head_seconds: float) -> None:
        """Closes the connection if its head is overdue, or its body or response is too slow."""
        late = self.phase == "head" and now - self.since > head_seconds
        if late or (self.phase == "body" and not self._is_fast_enough(now, reading=True)):
            self._refuse(408)
        elif (
            self.phase == "answer"
            and self.flow.write_paused
            and not self._is_fast_enough(now, reading=False)
        ):
            self._reset()

    def _is_fast_enough(self, now: float, *, reading: bool) -> bool:
        """Whether enough bytes were transferred in the window that ends now.

        Time during which the server itself blocks the transfer is not counted.
        """
        unsent = 0 if reading else self.transport.get_write_buffer_size()
        if (reading and self.flow.read_paused) or (not reading and not self._unsent):
            self.since, self._moved, self._unsent = now, 0, unsent
        if now - self.since < WINDOW_SECONDS:
            return True
        moved = self._moved if reading else self._unsent - unsent
        self.since, self._moved, self._unsent = now, 0, unsent
        return moved >= MIN_RATE * WINDOW_SECONDS

    def _enter(self, phase: Phase) -> None:
        self.phase, self.since, self._moved, self._unsent = phase, self.bounds.clock(), 0, 0

    def _reset(self) -> None:
        """Ends the connection without what the client has not read, which is up to megabytes."""
        opened = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _end_lingering(self, cycle: Any) -> None:
        if self.cycle is cycle and self.phase == "body" and not self.transport.is_closing():
            self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Sends an error response unless a response has begun, and closes the connection."""
        if self._ended:
            return
        self._ended = True
        self.bounds.leave(self)
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_answer(status))
            self.transport.close()
        else:
            self.transport.abort()


def create_protocol_class(bounds: Connections) -> type[BoundedProtocol]:
    """Returns the protocol class for one server."""
    return type("ServerProtocol", (BoundedProtocol,), {"bounds": bounds})


def _answer(status: int) -> bytes:
    phrase, code, detail = _REASONS[status]
    request_id = new_request_id()
    body = (
        f'{{"type":"urn:palestra:problem:{code}","title":"{phrase}","status":{status},'
        f'"code":"{code}","detail":"{detail}","request_id":"{request_id}"}}'
    )
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: "
        f"application/problem+json\r\nContent-Length: {len(body)}\r\n"
        f"X-Request-ID: {request_id}\r\n"
    )
    retry = "Retry-After: 5\r\n" if status in {408, 503} else ""
    return (
        f"{head}{retry}Cache-Control: no-store\r\nX-Content-Type-Options: "
        f"nosniff\r\nConnection: close\r\n\r\n{body}"
    ).encode()
