"""Blocks of epochs: the records of consecutive epochs of a run, as compressed JSON texts.

A text is kept byte by byte, whatever metrics it names: the records of neighbouring epochs resemble
each other so much that zstd takes a tenth of them. Never pickle; a damaged block is refused.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import zstandard

from app.metrics import column_codec
from app.metrics.column_codec import ColumnDamagedError
from app.metrics.columns import BlockDamagedError

MAX_BYTES: Final = 2**18
"""Bytes of text from which a block is complete; one epoch may have more."""

Epoch = tuple[int, str]
"""Number of the attempt's record, and the record as JSON text."""

_HEADER: Final = struct.Struct("<4sII")
"""Magic, number of epochs, bytes of the columns (numbers of records, bytes of texts)."""
_MAGIC: Final = b"PEB1"
_LEVEL: Final = 9
_COLUMNS: Final = 2


def encode(epochs: Sequence[Epoch]) -> bytes:
    """Returns the block that holds `epochs`."""
    texts = [text.encode() for _, text in epochs]
    numbers = np.array([seq for seq, _ in epochs], np.int64)
    sizes = np.array([len(text) for text in texts], np.int64)
    columns = column_codec.encode([numbers, sizes], [])
    compressor = zstandard.ZstdCompressor(_LEVEL)
    head = _HEADER.pack(_MAGIC, len(epochs), len(columns))
    return head + columns + compressor.compress(b"".join(texts))


def decode(content: bytes) -> list[Epoch]:
    """Returns the epochs of a block.

    Raises:
        BlockDamagedError: If `content` is not a valid block.
    """
    try:
        magic, count, size = _HEADER.unpack_from(content)
        if magic != _MAGIC:
            raise BlockDamagedError("not a block of epochs of this version")
        columns, frame = content[_HEADER.size :][:size], content[_HEADER.size + size :]
        (numbers, sizes), _ = column_codec.decode(columns, count, _COLUMNS, 0)
        if zstandard.frame_content_size(frame) != int(sizes.sum()) or np.any(sizes < 0):
            raise BlockDamagedError("the texts have another length")
        texts = zstandard.ZstdDecompressor().decompress(frame)
        ends = [0, *np.cumsum(sizes).tolist()]
        return [
            (seq, texts[begin:end].decode())
            for seq, (begin, end) in zip(numbers.tolist(), pairwise(ends), strict=True)
        ]
    except (struct.error, ColumnDamagedError, zstandard.ZstdError, UnicodeDecodeError) as error:
        raise BlockDamagedError(str(error)) from error


def cut(epochs: Sequence[Epoch]) -> Iterator[Sequence[Epoch]]:
    """Yields consecutive epochs, so many as a block holds."""
    begin = size = 0
    for place, (_, text) in enumerate(epochs):
        size += len(text.encode())
        if size >= MAX_BYTES:
            yield epochs[begin : place + 1]
            begin, size = place + 1, 0
    if begin < len(epochs):
        yield epochs[begin:]
