"""Log lines as one compressed piece of JSON. Never pickle."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Stream = Literal["stdout", "stderr", "palestra"]

CUT: Final = "characters were cut from over-long lines"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, without its line break."""

    stream: Stream
    wall: float
    text: str

    @property
    def size(self) -> int:
        """Bytes that count against the run's limit."""
        return len(self.text.encode()) + 1


def encode(lines: Sequence[Line]) -> bytes:
    """Returns the stored form of `lines`."""
    rows = [[line.stream, line.wall, line.text] for line in lines]
    return zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def decode(content: bytes) -> list[Line]:
    """Returns stored lines."""
    return [Line(stream, wall, text) for stream, wall, text in json.loads(zlib.decompress(content))]
