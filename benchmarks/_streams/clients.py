"""Clients of the event stream: readers, frozen ones, and some that abort at random times."""

import array
import asyncio
import fcntl
import re
import termios
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlencode

import psutil

from benchmarks._streams.content import Training, Viewer

_FRAME_END = b"\n\n"
_WALL = re.compile(rb'"wall":\[([0-9.]+)')
_RUN = re.compile(rb'"run_id":"([^"]+)"')
_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)
_REMEMBERED = 256
"""Contents that are kept, since many clients receive the same."""


@dataclass(frozen=True)
class Frames:
    """What a content holds, parsed once for all clients that receive it."""

    runs: tuple[bytes, ...]
    """For each frame of points the run."""
    ids: tuple[int, ...]
    walls: tuple[float, ...]
    is_resync: bool

    @classmethod
    def parse(cls, content: bytes) -> "Frames":
        """Reads whole frames; those that hold no points are left out."""
        runs, ids, walls = [], [], []
        for frame in content.split(_FRAME_END):
            wall = _WALL.search(frame)
            if wall is not None:
                run, number = _RUN.search(frame), _ID.search(frame)
                assert run is not None
                assert number is not None
                runs.append(run[1])
                ids.append(int(number[1]))
                walls.append(float(wall[1]))
        return cls(tuple(runs), tuple(ids), tuple(walls), b"event: resync" in content)

    def count_repeated(self, last: int) -> int:
        """Returns the number of frames whose ID is not above the one before."""
        before = (last, *self.ids[:-1])
        return sum(one <= other for one, other in zip(self.ids, before, strict=True))


@dataclass
class Findings:
    """What the clients received."""

    latencies: list[float] = field(default_factory=list)
    """Seconds between the sending of a batch and its arrival at a client."""
    frames: int = 0
    foreign: int = 0
    """Frames of a run that the client did not ask for."""
    repeated: int = 0
    """Frames whose ID is not above the one before."""
    lost: list[str] = field(default_factory=list)
    """Why streams ended that their clients did not end."""
    is_measuring: bool = False
    _parsed: dict[bytes, Frames] = field(default_factory=dict)

    def parse(self, content: bytes) -> Frames:
        """Returns the frames of a content."""
        found = self._parsed.get(content)
        if found is None:
            if len(self._parsed) >= _REMEMBERED:
                self._parsed.clear()
            found = self._parsed[content] = Frames.parse(content)
        return found

    def add(self, frames: Frames, now: float, *, own: Collection[bytes], last: int) -> None:
        """Counts the frames that a client of some runs received after the event `last`."""
        self.frames += len(frames.ids)
        self.foreign += sum(run not in own for run in frames.runs)
        self.repeated += frames.count_repeated(last)
        if self.is_measuring:
            self.latencies.extend([now - wall for wall in frames.walls])
        if frames.is_resync:
            self.lost.append("resync")


class StreamClient(asyncio.Protocol):
    """One connection that follows some runs."""

    def __init__(self, viewer: Viewer, runs: Sequence[str], findings: Findings) -> None:
        self._viewer = viewer
        self._runs = {run.encode() for run in runs}
        self._findings = findings
        self._rest = b""
        self._last = 0
        self.leaves = False
        self.opened = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    async def open(self, port: int, address: str) -> "StreamClient":
        """Connects from a local address, and waits for the start of the answer."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", port, local_addr=(address, 0))
        await asyncio.wait_for(self.opened.wait(), 60)
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the request."""
        # uvloop's transports are no instances of asyncio's.
        self.transport = transport = cast("asyncio.Transport", transport)
        query = urlencode({"type": "points", "run": sorted(r.decode() for r in self._runs)}, True)
        transport.write(
            f"GET /api/v1/events?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self._viewer.token}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Counts the frames of a chunk."""
        now = time.time()
        if not self.opened.is_set():
            if not data.startswith(b"HTTP/1.1 200"):
                self._findings.lost.append(data[:60].decode("latin-1"))
            self.opened.set()
        content, _, self._rest = (self._rest + data).rpartition(_FRAME_END)
        frames = self._findings.parse(content)
        if frames.ids or frames.is_resync:
            self._findings.add(frames, now, own=self._runs, last=self._last)
        if frames.ids:
            self._last = frames.ids[-1]

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes an end that the client did not choose."""
        self.opened.set()
        if not self.leaves:
            self._findings.lost.append(f"ended: {exc}")

    def abort(self) -> None:
        """Resets the connection."""
        self.leaves = True
        assert self.transport is not None
        self.transport.abort()


@dataclass
class FrozenClient:
    """A client that stops reading, as a stopped process does."""

    client: StreamClient
    queued: int = 0
    """Bytes that its system took and the client did not read."""
    stopped_at: float = 0.0
    """When its system last took bytes, that is, acknowledged some."""
    dropped_at: float | None = None

    def freeze(self) -> None:
        """Stops reading."""
        assert self.client.transport is not None
        self.client.leaves = True
        self.client.transport.pause_reading()
        self.stopped_at = time.monotonic()

    def look(self, served: Collection[tuple[str, int]]) -> None:
        """Notes whether the system took more bytes, and whether the server ended the connection.

        Args:
            served: Addresses to which the server has connections. The client's own system does not
                learn that the server's ended a connection.
        """
        if self.dropped_at is not None:
            return
        assert self.client.transport is not None
        opened = self.client.transport.get_extra_info("socket")
        if self.client.transport.is_closing() or opened.getsockname() not in served:
            self.dropped_at = time.monotonic()
            return
        held = array.array("i", [0])
        fcntl.ioctl(opened.fileno(), termios.FIONREAD, held)
        if held[0] != self.queued:
            self.queued, self.stopped_at = held[0], time.monotonic()

    @property
    def wait(self) -> float | None:
        """Seconds from the last acknowledged byte to the drop."""
        return None if self.dropped_at is None else self.dropped_at - self.stopped_at


def list_served(server: psutil.Process) -> set[tuple[str, int]]:
    """Returns the addresses to which a server has connections."""
    opened = server.net_connections("tcp")
    return {(one.raddr.ip, one.raddr.port) for one in opened if one.status == "ESTABLISHED"}


def choose_runs(
    trainings: Sequence[Training], viewer: Viewer, number: int, *, follow_all: bool
) -> list[str]:
    """Returns the runs that a client follows: one, or all of its user's project."""
    mine = [one.run_id for one in trainings if one.project == viewer.project]
    return mine if follow_all else [mine[number % len(mine)]]
