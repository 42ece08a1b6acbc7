"""Observes whether the other side of a connection still acknowledges what was sent to it.

Bytes that were written wait in the buffers of two systems, so writing succeeds long after a client
has stopped reading. The kernel counts what the client's system has acknowledged: once that one's
buffer is full, the count stands still while bytes are outstanding.
"""

import array
import contextlib
import fcntl
import socket
import struct
import sys
import termios
from typing import Final, Protocol

_BYTES_ACKNOWLEDGED: Final = 120
"""Offset of `tcpi_bytes_acked`, 64 bits, in Linux's `struct tcp_info`."""


class _Socket(Protocol):
    def fileno(self) -> int: ...

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None: ...


class AcknowledgedBytes:
    """The acknowledgements on one connection.

    Without the counters of Linux, or on a socket that is no TCP socket, it observes nothing.

    Args:
        connected: The socket, or what stands for it in a transport; `None` observes nothing.
    """

    def __init__(self, connected: _Socket | None) -> None:
        self._socket = connected if sys.platform == "linux" else None
        self._count = -1
        self._since = 0.0

    def restart(self, now: float) -> None:
        """Begins to count time anew, for example at the start of an answer."""
        self._since = now

    def count_stalled_seconds(self, now: float) -> float:
        """Returns for how long bytes have been outstanding of which none was acknowledged."""
        try:
            count, outstanding = self._read()
        except OSError:
            return 0.0
        if count != self._count or not outstanding:
            self._count, self._since = count, now
        return now - self._since

    def discard_unsent(self) -> None:
        """Makes the next close reset the connection.

        Otherwise the system would keep the unread bytes, and the other side its connection, for
        minutes after the close.
        """
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )

    def _read(self) -> tuple[int, int]:
        """Returns the acknowledged bytes so far, and those that are not acknowledged."""
        if self._socket is None:
            return 0, 0
        size = _BYTES_ACKNOWLEDGED + 8
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
        if len(info) < size:
            return 0, 0
        outstanding = array.array("i", [0])
        fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, outstanding)
        (count,) = struct.unpack_from("Q", info, _BYTES_ACKNOWLEDGED)
        return int(count), outstanding[0]
