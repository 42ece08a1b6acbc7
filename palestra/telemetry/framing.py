"""The frame of a spool: length, CRC-32 and payload.

Encodes frames and reads them from a buffer. Independent of files, locks and the meaning of a
payload.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from palestra.contract.telemetry import MAX_BATCH_BYTES

HEADER: Final = struct.Struct("<II")
"""Payload length and CRC-32 of the payload, little-endian."""

MAX_PAYLOAD_BYTES: Final = MAX_BATCH_BYTES - 1_024
"""Largest payload: a batch with one such record is still within the server's limit."""


class Frame(NamedTuple):
    """The payload of one frame of a buffer, and where the frame ends."""

    payload: bytes
    end: int
    """Offset of the first byte after the frame."""


class BrokenFrameError(ValueError):
    """The bytes at `offset` are not a complete frame."""

    def __init__(self, offset: int, *, is_torn: bool) -> None:
        super().__init__(f"{'torn' if is_torn else 'damaged'} frame at byte {offset}")
        self.offset = offset
        """Offset of the frame's first byte."""
        self.is_torn = is_torn
        """True where the buffer ends within the frame or with it: an interrupted write.

        False where other bytes follow: damage.
        """


def encode_frames(payloads: Iterable[bytes]) -> bytes:
    """Returns the frames of `payloads`, one after the other.

    Raises:
        ValueError: If a payload is empty or longer than `MAX_PAYLOAD_BYTES`.
    """
    parts: list[bytes] = []
    for payload in payloads:
        if not 0 < len(payload) <= MAX_PAYLOAD_BYTES:
            raise ValueError(
                f"a record takes {len(payload)} bytes: 1 to {MAX_PAYLOAD_BYTES} are allowed, write "
                "smaller records"
            )
        parts.append(HEADER.pack(len(payload), zlib.crc32(payload)))
        parts.append(payload)
    return b"".join(parts)


def read_frame(buffer: bytes | memoryview, offset: int) -> Frame | None:
    """Returns the frame at `offset`, or `None` at the end of the buffer.

    Raises:
        BrokenFrameError: If the bytes there are not a complete frame.
    """
    size = len(buffer)
    if offset >= size:
        return None
    start = offset + HEADER.size
    if start > size:
        raise BrokenFrameError(offset, is_torn=True)
    length, checksum = HEADER.unpack_from(buffer, offset)
    end = start + length
    if end > size:
        raise BrokenFrameError(offset, is_torn=True)
    payload = bytes(buffer[start:end])
    if not payload or zlib.crc32(payload) != checksum:
        raise BrokenFrameError(offset, is_torn=end == size or not any(buffer[offset:]))
    return Frame(payload, end)


def iterate_frames(buffer: bytes | memoryview, offset: int = 0) -> Iterator[Frame]:
    """Yields the frames of `buffer` from `offset` on.

    Raises:
        BrokenFrameError: At the first frame that is not complete.
    """
    while (frame := read_frame(buffer, offset)) is not None:
        yield frame
        offset = frame.end
