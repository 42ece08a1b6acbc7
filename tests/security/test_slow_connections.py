"""Connections whose clients stall are closed, those of slow ones stay open.

The server runs in the test's process, on real sockets, with a clock that the tests move.
"""

import asyncio
import contextlib
import hashlib
import itertools
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from app.connections import WINDOW_SECONDS, BoundedProtocol, Connections
from app.services.events import event_log
from app.settings import Settings
from tests.app.api.serving import AppServer
from tests.security import slow
from tests.support.listening import listening
from tests.support.waiting import PATIENCE_SECONDS, until

HEAD_SECONDS = 2.0
_CLOSED = 7
"""`TCP_CLOSE` of Linux."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


class ManualClock:
    """A clock that stands still until a test moves it."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class SlowServer:
    """A server with a clock that tests move."""

    shared: AppServer
    port: int
    bounds: Connections
    clock: ManualClock

    async def connect(self, begin: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a connection and sends the beginning of a request."""
        before = len(self.bounds.open)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await until(lambda: len(self.bounds.open) > before, "the server accepts the connection")
        writer.write(begin)
        return reader, writer

    async def connect_without_reading(self, begin: bytes) -> socket.socket:
        """Opens a connection with a small buffer, sends `begin` and reads nothing."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(opened, ("127.0.0.1", self.port))
        await loop.sock_sendall(opened, begin)
        return opened

    async def advance(self, seconds: float) -> None:
        """Lets time pass, after which the server looks at its connections."""
        # The server reads what was sent before: a round of the loop for each of the two sides.
        for _ in range(3):
            await asyncio.sleep(0)
        self.clock.seconds += seconds
        self.bounds.end_overdue()

    def head(self, who: str = "user") -> bytes:
        """Returns the headers of each request."""
        token = self.shared.tokens[who]
        return f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n".encode()

    def find(self, address: tuple[str, int]) -> BoundedProtocol:
        """Returns the server's side of the connection from an address."""
        return next(one for one in self.bounds.open if one.client == address)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(shared: AppServer) -> AsyncIterator[SlowServer]:
    clock = ManualClock()
    bounds = Connections(1_000, 1_000, head_seconds=HEAD_SECONDS, clock=clock)
    async with listening(shared.app, bounds=bounds) as url:
        yield SlowServer(shared, urlsplit(url).port or 0, bounds, clock)
        await until(lambda: not bounds.open, "no test leaves a connection open")


@pytest_asyncio.fixture(loop_scope="module")
async def hasty_server(shared: AppServer) -> AsyncIterator[SlowServer]:
    """A server whose clients must acknowledge something within two real seconds."""
    bounds = Connections(1_000, 1_000)
    async with listening(shared.app, bounds=bounds, stalled_seconds=2.0) as url:
        yield SlowServer(shared, urlsplit(url).port or 0, bounds, ManualClock())


DONE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "phase", "piece", "most"),
    [
        pytest.param(b"", "head", b"", HEAD_SECONDS, id="nothing"),
        pytest.param(slow.HALF, "head", b"", HEAD_SECONDS, id="half a head"),
        pytest.param(slow.HALF, "head", b"a", HEAD_SECONDS, id="a head by the byte"),
        pytest.param(DONE, "idle", slow.HALF, HEAD_SECONDS, id="a second head by the byte"),
        pytest.param(DONE, "idle", b"\r\n", HEAD_SECONDS, id="empty lines"),
        pytest.param(None, "body", b"", WINDOW_SECONDS, id="half a body"),
        pytest.param(None, "body", b" ", 2 * WINDOW_SECONDS, id="a body by the byte"),
    ],
)
async def test_a_stalled_connection_is_closed(
    server: SlowServer, begin: bytes | None, phase: str, piece: bytes, most: float
) -> None:
    """Single bytes at long intervals do not keep a connection open.

    They are those of `piece` in turn.
    """
    if begin is None:
        begin = b"POST /api/v1/experiments HTTP/1.1\r\n" + server.head()
        begin += b"Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"
    reader, writer = await server.connect(begin)
    (connection,) = server.bounds.open
    await until(lambda: connection.phase == phase, f"the server waits for {phase}")
    began = server.clock.seconds
    bytes_in_turn = itertools.cycle(piece)
    while server.bounds.open and server.clock.seconds - began <= most + 0.3:
        writer.write(bytes([next(bytes_in_turn)]) if piece else b"")
        await server.advance(0.3)
    assert not server.bounds.open
    assert server.clock.seconds - began > most / 2, "a short stall is no reason"
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def test_the_server_looks_at_its_connections_by_itself(server: SlowServer) -> None:
    reader, writer = await server.connect(slow.HALF)
    server.clock.seconds += 2 * HEAD_SECONDS
    assert b" 408 " in await reader.read()
    writer.close()
    assert Connections.from_settings(Settings(request_head_seconds=7), 1_024).head_seconds == 7


async def test_slow_uploads_and_idle_streams_continue(server: SlowServer) -> None:
    """The limit is on the transfer rate, not on the duration, so that slow uploads can complete."""
    content = b"w" * 30_000
    names = server.shared.names
    document = {
        "run_id": names["live_run"],
        "name": "slow.bin",
        "kind": "other",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    base = f"/api/v1/attempts/{names['live_attempt']}/artifacts"
    async with server.shared.client("live_attempt") as client:
        artifact = (await client.post(base, json=document)).json()["id"]
    quiet, quiet_writer = await server.connect(
        b"GET /api/v1/events HTTP/1.1\r\n" + server.head() + b"\r\n"
    )
    await quiet.readuntil(b"retry:")
    put = f"PUT {base}/{artifact} HTTP/1.1\r\nContent-Length: {len(content)}\r\n".encode()
    answer, writer = await server.connect(
        put + server.head("live_attempt") + b"Connection: close\r\n\r\n"
    )
    for start in range(0, len(content), 1_000):
        writer.write(content[start : start + 1_000])
        await server.advance(0.8)
    assert slow.parse_status(await answer.read()) == 200
    writer.close()
    async with server.shared.client("user") as client:
        await client.post(f"/api/v1/jobs/{names['live_job']}:pause", json={})
    await quiet.readuntil(b'"type":"job"')
    quiet_writer.close()
    await until(lambda: not server.bounds.open)


async def test_a_connection_whose_answer_is_not_read_is_closed(server: SlowServer) -> None:
    """Regression: an unread answer kept its connection, file and memory without a time limit."""
    request = b"GET /api/v1/openapi.json HTTP/1.1\r\n" + server.head() + b"\r\n"
    opened = await server.connect_without_reading(request)
    asking = asyncio.create_task(_request_until_closed(opened, request))
    await until(lambda: any(one.flow.write_paused for one in server.bounds.open))
    for _ in range(int(3 * WINDOW_SECONDS)):
        await server.advance(1)
    assert not server.bounds.open
    await asyncio.wait_for(asking, PATIENCE_SECONDS)
    opened.close()


async def _request_until_closed(opened: socket.socket, request: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            await asyncio.get_running_loop().sock_sendall(opened, request)


async def test_a_stream_whose_client_acknowledges_nothing_ends(
    hasty_server: SlowServer,
) -> None:
    """Regression: the buffers of two systems hid a stopped client for minutes."""
    server, streams = hasty_server, hasty_server.shared.app.state.hub._groups
    request = b"GET /api/v1/events HTTP/1.1\r\n" + server.head() + b"\r\n"
    frozen = await server.connect_without_reading(request)
    reader, writer = await server.connect(request)
    await reader.readuntil(b"retry:")
    await until(lambda: len(streams) == 2)
    for number in range(30):
        await _change_worker(server, "undrain" if number % 2 else "drain")
    async with server.shared.database.read() as session:
        newest = await event_log.read_cursor(session)
    await reader.readuntil(b"id: %d\n" % newest)
    await until(lambda: len(streams) == 1, "the stream of the client that stopped has ended")
    await _change_worker(server, "drain")
    await reader.readuntil(b'"type":"worker"')
    assert list(server.bounds.open) == [server.find(writer.get_extra_info("sockname"))]
    frozen.close()
    writer.close()
    await until(lambda: not server.bounds.open)


async def _change_worker(server: SlowServer, verb: str) -> None:
    async with server.shared.client("user") as client:
        path = f"/api/v1/workers/{server.shared.names['worker']}:{verb}"
        assert (await client.post(path)).status_code == 200


def _is_reset(opened: socket.socket) -> bool:
    """Whether the connection was reset, which is seen without reading from it."""
    return bool(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED)
