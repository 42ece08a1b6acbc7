"""Log lines as one compressed piece of JSON. Never pickle."""

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
        """Bytes that count against the run's limit."""
        return len(self.text.encode()) + 1


def encode(lines: Sequence[StoredLogLine]) -> bytes:
    """Returns the stored form of `lines`."""
    rows = [[line.stream, line.wall, line.text] for line in lines]
    return zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def decode(content: bytes) -> list[StoredLogLine]:
    """Returns stored lines."""
    return [
        StoredLogLine(stream, wall, text)
        for stream, wall, text in json.loads(zlib.decompress(content))
    ]
