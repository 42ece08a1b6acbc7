"""Slow clients: incomplete requests, and those that send without end."""

import contextlib
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.waiting import PATIENCE_SECONDS

HALF = b"GET /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def allow_descriptors(wanted: int) -> None:
    """Raises this process's limit of open file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    """Opens a connection from one of the loopback addresses."""
    return socket.create_connection(
        ("127.0.0.1", port), PATIENCE_SECONDS, source_address=(address, 0)
    )


@contextmanager
def send_half_requests(port: int, count: int, addresses: int) -> Iterator[list[socket.socket]]:
    """Opens connections from 127.0.2.1 upwards and sends half a request on each."""
    allow_descriptors(count + 500)
    with contextlib.ExitStack() as stack:
        held = []
        for index in range(count):
            place = index % addresses
            source = f"127.0.{2 + place // 250}.{1 + place % 250}"
            with contextlib.suppress(OSError):
                opened = stack.enter_context(connect(port, source))
                held.append(opened)
                opened.sendall(HALF)
        yield held


def read_answer(opened: socket.socket) -> bytes:
    """Returns the server's answer, read until the connection ends."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while chunk := opened.recv(65_536):
            said += chunk
    return said


def parse_status(said: bytes) -> int:
    """Returns the status code of an answer, or 0 if there is none."""
    return int(said.split(b" ", 2)[1]) if said.startswith(b"HTTP/1.1 ") else 0


def flood(opened: socket.socket, begin: bytes, more: bytes, most: int) -> int:
    """Sends up to about `most` bytes, or until the connection ends; returns the number sent."""
    sent = 0
    opened.settimeout(10)
    try:
        opened.sendall(begin)
        while sent < most:
            opened.sendall(more)
            sent += len(more)
    except OSError:
        pass
    return sent
