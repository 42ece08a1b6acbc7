"""Limits below HTTP: idle or slow connections do not keep other clients from connecting."""

import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from app.connections import MAX_HEAD, MAX_HEADERS, MAX_URL, WINDOW_SECONDS, Connections
from app.settings import Settings
from palestra.contract.views import Problem
from tests.security import slow
from tests.security.target import LatencyProbe, Target

_CLOSED = 7
"""`TCP_CLOSE` of Linux."""

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    settings = {"PALESTRA_REQUEST_HEAD_SECONDS": "60"}
    with Target(tmp_path_factory.mktemp("few"), descriptors=1_024, settings=settings) as started:
        yield started


@pytest.fixture(scope="module")
def target_with_short_limits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    settings = {"PALESTRA_REQUEST_HEAD_SECONDS": "2"}
    with Target(tmp_path_factory.mktemp("hasty"), settings=settings) as started:
        yield started


def _head(target: Target, who: str = "user") -> bytes:
    token = target.tokens[who]
    return f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n".encode()


@pytest.mark.parametrize("addresses", [200, 1])
def test_incomplete_requests_do_not_block_other_clients(target: Target, addresses: int) -> None:
    """Regression: 1,500 of them used up the limit of 1,024 descriptors."""
    witness = LatencyProbe(target)
    with witness.watch(), slow.send_half_requests(target.port, 2_000, addresses) as held:
        assert len(held) > 1_900
        for _ in range(20):
            assert target.request("GET", "/api/v1/session").status_code == 200
            fresh = httpx.get(f"{target.url}/healthz", timeout=10, trust_env=False)
            assert fresh.status_code == 200
    assert not witness.failures, witness.failures[:3]
    assert len(witness.waits) > 20
    assert "Too many open files" not in target.log("server")


def test_request_heads_are_limited(target: Target) -> None:
    """Regression: the server accepted 291 MiB of headers."""
    line = b"X-%d: " % 1
    cases = {
        431: [
            b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            + line
            + b"a" * (MAX_HEAD + 10)
            + b"\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
            b"GET /healthz HTTP/1.1\r\n" + b"X-Long: " + b"a" * (MAX_HEAD + 100_000),
        ],
        414: [
            b"GET /healthz?" + b"a" * size + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            for size in (MAX_URL + 1, MAX_HEAD + 1, MAX_HEAD + 100_000)
        ],
        200: [
            b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX: "
            + b"a" * 30_000
            + b"\r\n\r\n"
        ],
        422: [
            b"GET /healthz?"
            + b"a" * 9_000
            + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        ],
    }
    for status, requests in cases.items():
        for request in requests:
            with slow.connect(target.port) as opened:
                opened.sendall(request)
                answer = slow.read_answer(opened)
                assert slow.parse_status(answer) == status, request[:60]
                if status in {414, 431}:
                    head, _, body = answer.partition(b"\r\n\r\n")
                    problem = Problem.model_validate_json(body)
                    assert f"X-Request-ID: {problem.request_id}".encode() in head
    for begin in (b"GET / HTTP/1.1\r\nX: ", b"GET /", b"POST /api/v1/session HTTP/1.1\r\n"):
        with slow.connect(target.port) as opened:
            let_in = slow.flood(opened, begin, b"a" * 65_536, 64 * 2**20)
        # The buffers of the operating system accept less than 16 MiB.
        assert let_in < 16 * 2**20, begin


def test_trailers_are_limited(target: Target) -> None:
    head = (
        b"PUT /api/v1/session HTTP/1.1\r\n" + _head(target) + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with slow.connect(target.port) as opened:
        let_in = slow.flood(opened, head + b"0\r\n", b"X-Y: zzzzzzzzzz\r\n" * 4_000, 64 * 2**20)
    assert let_in < 16 * 2**20


def test_stalled_connections_are_closed(target_with_short_limits: Target) -> None:
    """Covers heads, bodies and unread answers on new and reused connections.

    Single bytes at long intervals do not keep a connection open.
    """
    post = b"POST /api/v1/experiments HTTP/1.1\r\n" + _head(target_with_short_limits)
    post += b"Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"
    done = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    begun = {
        "nothing": (b"", b"", 6),
        "half a head": (slow.HALF, b"", 6),
        "a head by the byte": (slow.HALF, b"a", 6),
        "a second head by the byte": (done, b"G", 8),
        "empty lines": (done, b"\r\n", 8),
        "half a body": (post, b"", WINDOW_SECONDS + 6),
        "a body by the byte": (post, b" ", 2 * WINDOW_SECONDS + 6),
    }

    def attack(case: tuple[bytes, bytes, float]) -> float:
        begin, piece, most = case
        with slow.connect(target_with_short_limits.port) as opened:
            opened.sendall(begin)
            return slow.trickle(opened, piece, 0.3, most + 20) - most

    with ThreadPoolExecutor(len(begun)) as pool:
        late = dict(zip(begun, pool.map(attack, begun.values()), strict=True))
    assert {name: seconds for name, seconds in late.items() if seconds > 0} == {}


def test_slow_uploads_and_idle_streams_continue(target_with_short_limits: Target) -> None:
    """The limit is on the transfer rate, not on the duration, so that slow uploads can complete."""
    content = b"w" * 30_000
    sha256 = hashlib.sha256(content).hexdigest()
    body = {
        "run_id": target_with_short_limits.names["run"],
        "name": "slow.bin",
        "kind": "other",
        "size": len(content),
        "sha256": sha256,
    }
    base = f"/api/v1/attempts/{target_with_short_limits.names['attempt']}/artifacts"
    artifact = target_with_short_limits.request("POST", base, body, "attempt").json()["id"]
    put = f"PUT {base}/{artifact} HTTP/1.1\r\nContent-Length: {len(content)}\r\n".encode()
    stream = b"GET /api/v1/events HTTP/1.1\r\n" + _head(target_with_short_limits) + b"\r\n"
    with (
        slow.connect(target_with_short_limits.port) as quiet,
        slow.connect(target_with_short_limits.port) as opened,
    ):
        quiet.sendall(stream)
        opened.sendall(
            put + _head(target_with_short_limits, "attempt") + b"Connection: close\r\n\r\n"
        )
        for start in range(0, len(content), 1_000):
            opened.sendall(content[start : start + 1_000])
            time.sleep(0.8)
        assert slow.parse_status(slow.read_answer(opened)) == 200
        target_with_short_limits.request(
            "POST", f"/api/v1/jobs/{target_with_short_limits.names['job']}:pause", {}
        )
        assert b'"type":"job"' in _receive_until(quiet, b'"type":"job"')


def _receive_until(opened: socket.socket, wanted: bytes) -> bytes:
    opened.settimeout(60)
    said = b""
    while wanted not in said and (chunk := opened.recv(65_536)):
        said += chunk
    return said


def test_a_connection_whose_answer_is_not_read_is_closed(target_with_short_limits: Target) -> None:
    """Regression: an unread answer kept its connection, file and memory without a time limit."""
    request = b"GET /api/v1/openapi.json HTTP/1.1\r\n" + _head(target_with_short_limits) + b"\r\n"
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.connect(("127.0.0.1", target_with_short_limits.port))
        stopped = threading.Event()
        threading.Thread(
            target=_request_until_stopped, args=(opened, request, stopped), daemon=True
        ).start()
        assert stopped.wait(3 * WINDOW_SECONDS + 10)


def test_a_stream_whose_client_acknowledges_nothing_is_reset(
    target_with_short_limits: Target,
) -> None:
    """Regression: the buffers of two systems hid a stopped client for minutes."""
    target = target_with_short_limits
    stream = b"GET /api/v1/events HTTP/1.1\r\n" + _head(target) + b"\r\n"
    with socket.socket() as frozen, slow.connect(target.port) as reader:
        frozen.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        frozen.connect(("127.0.0.1", target.port))
        for opened in (frozen, reader):
            opened.sendall(stream)
        assert _receive_until(reader, b"retry:")
        for number in range(30):
            order = "undrain" if number % 2 else "drain"
            done = target.request("POST", f"/api/v1/workers/{target.names['worker']}:{order}")
            assert done.status_code == 200
        stopped = time.monotonic()
        assert b'"type":"worker"' in _receive_until(reader, b'"type":"worker"')
        while not _is_reset(frozen):
            assert time.monotonic() - stopped < 30
            time.sleep(0.2)
        assert time.monotonic() - stopped > 5, "a short stall is no reason"
        target.request("POST", f"/api/v1/workers/{target.names['worker']}:drain")
        assert _receive_until(reader, b'"type":"worker"')
        assert not _is_reset(reader)


def _is_reset(opened: socket.socket) -> bool:
    """Whether the connection was reset, which is seen without reading from it."""
    state = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state == _CLOSED


def _request_until_stopped(opened: socket.socket, request: bytes, stopped: threading.Event) -> None:
    try:
        while True:
            opened.sendall(request)
    except OSError:
        stopped.set()


def test_connection_limits_reserve_descriptors() -> None:
    few = Connections.from_settings(Settings(), 1_024)
    assert (few.most, few.most_per_address, few.backlog) == (768, 384, 128)
    many = Connections.from_settings(
        Settings(max_connections=5_000, max_connections_per_address=7), 65_536
    )
    assert (many.most, many.most_per_address) == (5_000, 7)
