"""Limits below HTTP: idle connections and large heads do not keep other clients from connecting."""

import pytest

from app.connections import MAX_HEAD, MAX_HEADERS, MAX_URL, Connections
from app.settings import Settings
from palestra.contract.views import Problem
from tests.security import slow
from tests.security.target import Target, send

pytestmark = pytest.mark.processes


def _head(target: Target, who: str = "user") -> bytes:
    token = target.tokens[who]
    return f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n".encode()


@pytest.mark.parametrize("addresses", [200, 1])
def test_incomplete_requests_do_not_block_other_clients(target: Target, addresses: int) -> None:
    """Regression: 1,500 of them used up the limit of 1,024 descriptors."""
    with slow.send_half_requests(target.port, 2_000, addresses) as held:
        assert len(held) > 1_900
        for _ in range(20):
            assert target.request("GET", "/api/v1/session").status_code == 200
            # On a new connection, from another address each time.
            assert send(target, "GET", "/api/v1/session", b"", "user") == 200
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


def test_connection_limits_reserve_descriptors() -> None:
    few = Connections.from_settings(Settings(), 1_024)
    assert (few.most, few.most_per_address, few.backlog) == (768, 384, 128)
    many = Connections.from_settings(
        Settings(max_connections=5_000, max_connections_per_address=7), 65_536
    )
    assert (many.most, many.most_per_address) == (5_000, 7)
