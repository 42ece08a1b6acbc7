"""A column of records as JSON texts, each of them compressed by itself.

A list shows the latest and the best evaluation of a hundred runs, so a record has to be decoded
without its neighbours. What all records have in common, names and their order, is in a dictionary
instead, which makes zstd take a quarter of the text.

SQLite stores bytes, PostgreSQL the same in base64, since the column was declared as text.
"""

import base64
import threading
from typing import Any, Final

import zstandard
from sqlalchemy import Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_FIRST: Final = b"\x01"
"""Names the dictionary. A stored record needs the one that it was written with, so a better one
gets another number."""
_IN_BASE64: Final = "zstd:"
"""Begins a record in PostgreSQL."""
_LEVEL: Final = 3
_DICTIONARY: Final = (
    b'{"run":"run_01m8d46886fne8pq096g48wb4c","type":"evaluation","env_step":8192,"update":3072,'
    b'"episode":324,"wall":1790000004.604658,"episodes":20,"mean":32.15,"median":31.0,"stdev":23.2,'
    b'"min":20.0,"max":41.0,"length_mean":32.15,"length_median":31.0,"length_stdev":4.2,'
    b'"length_min":20.0,"length_max":41.0,"returns":[.0,500.0,1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,'
    b'0.0,],"success_rate":null,"seed":123456,"snapshot_id":null,"final":false,'
    b'"source":"evaluation","metrics":{}}'
)

_local: Final = threading.local()


class RecordText(TypeDecorator[str]):
    """Column type of a record's JSON text, exact to the last byte."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Returns the stored form."""
        if value is None:
            return None
        content = _FIRST + _get_codecs()[0].compress(value.encode())
        if dialect.name == "sqlite":
            return content
        return _IN_BASE64 + base64.b64encode(content).decode()

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Returns the text.

        Raises:
            ValueError: If the dictionary is unknown.
        """
        if value is None:
            return None
        if isinstance(value, str):
            value = base64.b64decode(value.removeprefix(_IN_BASE64))
        if value[:1] != _FIRST:
            raise ValueError("the record was written by another version")
        return _get_codecs()[1].decompress(value[1:]).decode()


def _get_codecs() -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
    """Returns the compressor and decompressor of this thread: they may not be shared."""
    found: tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor] | None
    found = getattr(_local, "codecs", None)
    if found is None:
        shared = zstandard.ZstdCompressionDict(
            _DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT
        )
        compressor = zstandard.ZstdCompressor(
            _LEVEL, dict_data=shared, write_dict_id=False, write_checksum=False
        )
        found = _local.codecs = compressor, zstandard.ZstdDecompressor(dict_data=shared)
    return found
