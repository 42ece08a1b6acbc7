"""Collects what a writer of a file writes, so that the file is sent while it is made."""

import io
from typing import Any


class WrittenBytes(io.RawIOBase):
    """A file that keeps what is written until it is taken; it cannot seek."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[bytes] = []

    def writable(self) -> bool:
        """Returns whether bytes can be written: always."""
        return True

    def write(self, data: Any, /) -> int:
        """Keeps a copy of the bytes; returns their number."""
        self._kept.append(bytes(data))
        return len(self._kept[-1])

    def take(self) -> bytes:
        """Returns what was written since the last call."""
        taken = b"".join(self._kept)
        self._kept.clear()
        return taken
