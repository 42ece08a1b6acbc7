"""A TCP proxy in front of a server that can drop single answers or all traffic, or hold back
streams.
"""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_CHUNK = 65_536
_CLAIM = b"POST /api/v1/leases HTTP"
_STREAM = b"content-type: text/event-stream"


class Proxy:
    """A TCP proxy in front of a local port.

    Args:
       target: Port of the server.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._partitioned = threading.Event()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.answers_to_lose = 0
        """Answers to claims that are still to be lost: the server acts on the request, and the
        connection is cut before its answer.
        """
        self.lost_answers = 0
        self.delay_seconds = 0.0
        """Seconds for which each piece of data is delayed, in both directions."""
        self.collects_streams = False
        """Whether an event stream is passed on only when it has ended, as by a proxy that buffers
        answers."""
        threading.Thread(target=self._accept, daemon=True).start()

    def partition(self) -> None:
        """Drops every byte from now on, in both directions, without closing any connection."""
        self._partitioned.set()

    def heal(self) -> None:
        """Ends the partition; resets each connection on which bytes were dropped."""
        self.drop_connections()
        self._partitioned.clear()

    def drop_connections(self) -> None:
        """Resets every open connection."""
        with self._lock:
            dropped, self._connections = self._connections, set()
        for connection in dropped:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stops listening and resets every connection."""
        self._listener.close()
        self.drop_connections()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),
            self._connect() as server,
        ):
            with self._lock:
                self._connections |= {client, server}
            loses = threading.Event()
            back = threading.Thread(
                target=self._relay_answers, args=(server, client, loses), daemon=True
            )
            back.start()
            while data := client.recv(_CHUNK):
                time.sleep(self.delay_seconds)
                if self._may_pass():
                    self._mark_claim(data, loses)
                    server.sendall(data)
            self._end(client, server)
            back.join()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._target))

    def _mark_claim(self, data: bytes, loses: threading.Event) -> None:
        with self._lock:
            if data.startswith(_CLAIM) and self.answers_to_lose > 0:
                self.answers_to_lose -= 1
                loses.set()

    def _relay_answers(
        self, server: socket.socket, client: socket.socket, loses: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_CHUNK):
                if loses.is_set():
                    self.lost_answers += 1
                    break
                time.sleep(self.delay_seconds)
                if self.collects_streams and _STREAM in data.lower():
                    data += b"".join(iter(lambda: server.recv(_CHUNK), b""))
                if self._may_pass():
                    client.sendall(data)
        self._end(client, server)

    def _may_pass(self) -> bool:
        return not self._partitioned.is_set()

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class BalancingProxy(Proxy):
    """A proxy in front of several servers: each connection goes to the next one that listens.

    Args:
        targets: Ports of the servers.
    """

    def __init__(self, targets: Sequence[int]) -> None:
        self._targets = itertools.cycle(targets)
        self._number = len(targets)
        super().__init__(targets[0])

    def _connect(self) -> socket.socket:
        for _ in range(self._number - 1):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", next(self._targets)))
        return socket.create_connection(("127.0.0.1", next(self._targets)))


@contextmanager
def run_proxy(target: int) -> Iterator[Proxy]:
    """Runs a proxy in front of a local port."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
