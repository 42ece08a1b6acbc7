"""The load generator: sends batches over HTTP, a connection per client, in a process of its own.

It writes requests by hand, since a client library would take longer than the servers, and encodes
the bodies before the clock starts.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks._tracking.workloads import Workload

_OK: Final = 200
_MAX_BATCHES: Final = 500
"""Batches a second of one client that are encoded beforehand; of 100 clients 50 each."""
_REST_SECONDS: Final = 0.05
"""Rest of a client whose batch was refused."""


class BatchEncoder(Protocol):
    """One client of a server: where it sends its batches and what is in them."""

    @property
    def path(self) -> str:
        """Path of the request."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers beside those of the body."""

    def encode(self, workload: Workload, number: int) -> bytes:
        """Returns the body of a batch with an index from 0."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a server did of a workload."""

    points_per_second: float
    """Of acknowledged batches."""
    seconds: list[float]
    """Times of acknowledged batches, in ascending order."""
    refused: int
    """Batches that were not acknowledged."""
    generator_seconds: float = 0.0
    """Processor seconds of the load generator per second, of the cores that the server uses too."""


class HttpConnection:
    """A connection that sends one request after the other.

    Args:
        reader: From the server.
        writer: To the server.
        head: Beginning of each request, up to the length of its body.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    @classmethod
    async def open(
        cls, port: int, path: str, headers: dict[str, str], method: str = "POST"
    ) -> "HttpConnection":
        """Connects to a port of this machine."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "Content-Type: application/json", "Content-Length: "])
        return cls(reader, writer, head)

    async def send(self, body: bytes) -> tuple[int, bytes]:
        """Sends a request; returns status and content of the answer."""
        self._writer.write(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return status, await self._reader.readexactly(int(line[15:]))
        content = b""
        while size := int(await self._reader.readline(), 16):
            content += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return status, content

    def close(self) -> None:
        """Closes the connection."""
        self._writer.close()


def measure(
    port: int, workload: Workload, encoders: Sequence[BatchEncoder], seconds: float
) -> Load:
    """Sends batches of all clients for some time, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_run, port, workload, list(encoders), seconds).result()


def _run(port: int, workload: Workload, encoders: Sequence[BatchEncoder], seconds: float) -> Load:
    return asyncio.run(_send_all(port, workload, encoders, seconds))


async def _send_all(
    port: int, workload: Workload, encoders: Sequence[BatchEncoder], seconds: float
) -> Load:
    encode_beforehand(workload, encoders, seconds)
    began, began_used = time.perf_counter(), time.process_time()
    times: list[float] = []
    refused = await asyncio.gather(
        *(_send(port, workload, one, began + seconds, times) for one in encoders)
    )
    elapsed = time.perf_counter() - began
    used = (time.process_time() - began_used) / elapsed
    return Load(len(times) * workload.points / elapsed, sorted(times), sum(refused), used)


def encode_beforehand(workload: Workload, encoders: Sequence[BatchEncoder], seconds: float) -> None:
    """Encodes as many batches as each client may send; the encoders keep them for all clients."""
    for number in range(int(seconds * _MAX_BATCHES / workload.clients**0.5)):
        encoders[0].encode(workload, number)


async def _send(
    port: int, workload: Workload, encoder: BatchEncoder, until: float, times: list[float]
) -> int:
    """Sends batches over one connection until a time; returns how many were refused."""
    connection = await HttpConnection.open(port, encoder.path, encoder.headers)
    number = refused = 0
    while time.perf_counter() < until:
        body = encoder.encode(workload, number)
        began = time.perf_counter()
        status, _ = await connection.send(body)
        if status == _OK:
            times.append(time.perf_counter() - began)
            number += 1
        else:
            refused += 1
            await asyncio.sleep(_REST_SECONDS)
    connection.close()
    return refused
