"""Writes rows of exports as CSV, Parquet or an Arrow stream, piece by piece.

Loads pyarrow, which takes some 30 MB: import this module where an export begins.

CSV is UTF-8 with a line of names, commas and LF line ends. Numbers are the shortest decimals that
restore every bit; floats have a point or an exponent. NaN and the infinities are `NaN`, `Infinity`
and `-Infinity`; what is absent is empty. Lists, metrics and
episodes of epochs are JSON in quotes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.metrics.sort_records import STATISTICS
from app.written_bytes import WrittenBytes
from palestra.contract.record_exports import RecordFormat, RecordKind
from palestra.contract.telemetry import write_number

# The pool of pyarrow keeps what was freed: a server would stay as large as its largest export.
pa.set_memory_pool(pa.system_memory_pool())

_NAME: Final = pa.dictionary(pa.int32(), pa.string())
_AXES: Final = (
    ("env_step", pa.int64()),
    ("update", pa.int64()),
    ("episode", pa.int64()),
    ("wall", pa.float64()),
    ("relative", pa.float64()),
)
_ORDER: Final = (("fence", pa.int64()), ("superseded", pa.bool_()))
_NUMBERS: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64())]))
SCHEMAS: Final[Mapping[RecordKind, pa.Schema]] = {
    "points": pa.schema(
        [("run_id", _NAME), ("series", _NAME), *_AXES, ("value", pa.float64()), *_ORDER]
    ),
    "episodes": pa.schema(
        [
            ("run_id", _NAME),
            ("env_index", pa.int64()),
            *_AXES,
            ("episode_return", pa.float64()),
            ("episode_length", pa.int64()),
            ("terminated", pa.bool_()),
            *_ORDER,
        ]
    ),
    "evaluations": pa.schema(
        [
            ("run_id", _NAME),
            ("id", pa.string()),
            ("source", pa.string()),
            *_AXES,
            ("episodes", pa.int64()),
            *((name, pa.float64()) for name in STATISTICS),
            ("seed", pa.int64()),
            ("snapshot_id", pa.string()),
            ("final", pa.bool_()),
            ("returns", pa.list_(pa.float64())),
            ("metrics", _NUMBERS),
            *_ORDER,
        ]
    ),
    "epochs": pa.schema(
        [
            ("run_id", _NAME),
            ("total_epoch", pa.int64()),
            ("total_itr", pa.int64()),
            *_AXES,
            ("last_episode", pa.list_(_NUMBERS)),
            *_ORDER,
        ]
    ),
}
"""Columns of each kind of record, in the order of a file that has all of them."""


def select_columns(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Returns the columns with these names in their order; all for no names."""
    return pa.schema([schema.field(name) for name in dict.fromkeys(names)]) if names else schema


def build_batch(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Returns rows with the columns of a schema.

    Args:
        schema: The columns.
        columns: Values by column, more than the schema has: arrays, lists, or arrays of pyarrow.
    """
    arrays = [
        columns[field.name]
        if isinstance(columns[field.name], pa.Array)
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def repeat_name(names: pa.Array, codes: Any) -> pa.Array:
    """Returns a column of names, given their places in `names`: all rows share one dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


class RecordFile(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Returns the bytes of further rows; empty where the file keeps them back."""

    def close(self) -> bytes:
        """Returns the end of the file."""


def open_file(form: RecordFormat, schema: pa.Schema) -> RecordFile:
    """Returns an empty file with the columns of a schema."""
    if form == "csv":
        return _CsvFile(schema)
    return _ArrowFile(schema) if form == "arrow" else _ParquetFile(schema)


class _ArrowFile:
    def __init__(self, schema: pa.Schema) -> None:
        self._pieces = WrittenBytes()
        self._writer = pa.ipc.new_stream(self._pieces, schema)

    def write(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._pieces.take()

    def close(self) -> bytes:
        self._writer.close()
        return self._pieces.take()


class _ParquetFile:
    """A row group for each batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self._pieces = WrittenBytes()
        names = [field.name for field in schema if field.type == _NAME]
        # A dictionary of floats would take 0.0 and -0.0 for one value.
        self._writer = pq.ParquetWriter(
            self._pieces, schema, compression="zstd", use_dictionary=names
        )

    def write(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._pieces.take()

    def close(self) -> bytes:
        self._writer.close()
        return self._pieces.take()


class _CsvFile:
    def __init__(self, schema: pa.Schema) -> None:
        self._head = ",".join(schema.names).encode() + b"\n"

    def write(self, batch: pa.RecordBatch) -> bytes:
        if not batch.num_rows:
            return b""
        head, self._head = self._head, b""
        cells = [_format_column(column) for column in batch.columns]
        rows = pc.binary_join_element_wise(
            *cells, ",", null_handling="replace", null_replacement=""
        )
        table = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
        return b"".join([head, pc.binary_join(table, "\n")[0].as_buffer().to_pybytes(), b"\n"])

    def close(self) -> bytes:
        return self._head


def _format_column(column: pa.Array) -> pa.Array:
    """Returns the cells of a column; absent ones are NULL."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _format_floats(column)
    if pa.types.is_list(kind):
        write = _choose_list_writer(kind.value_type)
        cells = [None if one is None else _quote(write(one)) for one in column.to_pylist()]
        return pa.array(cells, pa.string())
    return column.cast(pa.string())


def _format_floats(column: pa.Array) -> pa.Array:
    cells = column.cast(pa.string())
    is_integral = pc.match_substring_regex(cells, r"^-?[0-9]+$")
    if pc.any(is_integral).as_py():
        cells = pc.if_else(is_integral, pc.binary_join_element_wise(cells, ".0", ""), cells)
    is_finite = pc.is_finite(column)
    if pc.all(is_finite).as_py() is not False:
        return cells
    infinite = pc.if_else(pc.greater(column, 0.0), "Infinity", "-Infinity")
    special = pc.if_else(pc.is_nan(column), "NaN", infinite)
    return pc.if_else(is_finite, cells, special)


def _choose_list_writer(kind: pa.DataType) -> Callable[[Any], Any]:
    """Returns what turns a list of values of a type into a document of JSON."""
    if pa.types.is_struct(kind):
        return _list_metrics
    return _list_episodes if pa.types.is_list(kind) else _list_numbers


def _list_numbers(values: Sequence[float]) -> list[Any]:
    return [write_number(one) for one in values]


def _list_metrics(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {one["name"]: write_number(one["value"]) for one in metrics}


def _list_episodes(episodes: Sequence[Any]) -> list[Any]:
    return [_list_metrics(one) for one in episodes]


def _quote(document: Any) -> str:
    """Returns JSON as one cell."""
    text = json.dumps(document, separators=(",", ":")).replace('"', '""')
    return f'"{text}"'


def cut_batches(batches: Sequence[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of all batches in batches of at most `most` rows."""
    joined = join_batches(batches)
    for first in range(0, joined.num_rows, most):
        yield joined.slice(first, most)


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of all batches as one."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
