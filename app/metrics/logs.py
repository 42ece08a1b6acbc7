"""Blocks of log lines, as compressed JSON. Never pickle."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Stream = Literal["stdout", "stderr", "palestra"]

CUT: Final = "characters were cut from over-long lines"


@dataclass(frozen=True, slots=True)
class StoredLogLine:
    """One line of a log, without its line break."""

    stream: Stream
    wall: float
    text: str

    @property
    def size(self) -> int:
        """Number of bytes that count towards the run's limit."""
        return len(self.text.encode()) + 1


def encode(lines: Sequence[StoredLogLine]) -> bytes:
    """Returns lines as a compressed block."""
    rows = [[line.stream, line.wall, line.text] for line in lines]
    return zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def decode(content: bytes) -> list[StoredLogLine]:
    """Returns the lines of a compressed block."""
    return [
        StoredLogLine(stream, wall, text)
        for stream, wall, text in json.loads(zlib.decompress(content))
    ]
