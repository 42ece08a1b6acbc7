"""Tables of points: series that share their axes, as they arrive with a batch.

The tables of a run in one batch are stored together, not compressed: they are read often and live
for seconds, until the compactor turns them into blocks.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from app.metrics.columns import BlockDamagedError, Columns, Floats, Ints, concatenate, empty

SERIES_MAGIC: Final = b"PCT1"
"""Begins the content of one series of tables: then come its name, a line break, and the tables."""

_NO_EXTRA: Final[Mapping[str, Ints]] = {}
_AXES: Final = ("seq", "env_step", "update", "episode")


@dataclass(frozen=True, slots=True)
class PointTable:
    """Points of several series at the same positions, in the order of their records."""

    seq: Ints
    """Record of the attempt that each point came with."""
    env_step: Ints
    update: Ints
    episode: Ints
    wall: Floats
    values: Mapping[str, Floats]
    """Values by the name of the series."""
    extra: Mapping[str, Mapping[str, Ints]] = field(default_factory=dict)
    """Further integer columns by the name of the series."""

    def __len__(self) -> int:
        return len(self.wall)

    def get_columns(self, name: str) -> Columns:
        """Returns the points of one series."""
        return Columns(
            self.seq,
            self.env_step,
            self.update,
            self.episode,
            self.wall,
            self.values[name],
            self.extra.get(name, _NO_EXTRA),
        )


def count_points(tables: Iterable[PointTable]) -> int:
    """Returns the number of values of all series."""
    return sum(len(table) * len(table.values) for table in tables)


def join_series(
    tables: Iterable[PointTable], names: Collection[str] | None = None
) -> dict[str, Columns]:
    """Returns the points of each series, in the order of the tables; of all series by default."""
    parts: dict[str, list[Columns]] = {}
    for table in tables:
        for name in table.values:
            if names is None or name in names:
                parts.setdefault(name, []).append(table.get_columns(name))
    return {name: concatenate(some) for name, some in parts.items()}


def encode(tables: Sequence[PointTable]) -> bytes:
    """Returns the tables as bytes: a line of JSON that describes them, then their columns."""
    heads: list[dict[str, Any]] = []
    columns: list[bytes] = []
    for table in tables:
        extra = {name: list(found) for name, found in table.extra.items() if found}
        heads.append({"n": len(table), "names": list(table.values), "extra": extra})
        columns += [getattr(table, name).tobytes() for name in _AXES]
        columns.append(table.wall.tobytes())
        columns += [value.tobytes() for value in table.values.values()]
        columns += [table.extra[name][one].tobytes() for name in extra for one in extra[name]]
    head = json.dumps(heads, separators=(",", ":"), ensure_ascii=False).encode()
    return b"".join([head, b"\n", *columns])


def decode(content: bytes) -> list[PointTable]:
    """Returns the tables that `encode` wrote.

    Raises:
        BlockDamagedError: If `content` holds no tables.
    """
    end = content.find(b"\n")
    try:
        heads = json.loads(content[:end])
        offset = end + 1
        tables: list[PointTable] = []
        for head in heads:
            table, offset = _decode_table(head, content, offset)
            tables.append(table)
    except (ValueError, KeyError, TypeError) as error:
        raise BlockDamagedError(f"the tables are damaged: {error}") from error
    if offset != len(content):
        raise BlockDamagedError("the tables have another length")
    return tables


def decode_series(content: bytes) -> Columns:
    """Returns the points of the series that `content` names; none if the tables lack it.

    Raises:
        BlockDamagedError: If `content` holds no tables.
    """
    name, _, tables = content[len(SERIES_MAGIC) :].partition(b"\n")
    wanted = name.decode(errors="replace")
    return join_series(decode(tables), {wanted}).get(wanted, empty())


def _decode_table(head: Mapping[str, Any], content: bytes, offset: int) -> tuple[PointTable, int]:
    count, names, extra = head["n"], head["names"], head["extra"]
    size = 8 * count

    def take_ints() -> Ints:
        nonlocal offset
        offset += size
        return np.frombuffer(content, np.int64, count, offset - size)

    def take_floats() -> Floats:
        nonlocal offset
        offset += size
        return np.frombuffer(content, np.float64, count, offset - size)

    seq, env_step, update, episode = (take_ints() for _ in _AXES)
    wall = take_floats()
    values = {name: take_floats() for name in names}
    extras = {name: {one: take_ints() for one in ones} for name, ones in extra.items()}
    return PointTable(seq, env_step, update, episode, wall, values, extras), offset
