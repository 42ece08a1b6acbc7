"""The points of one run in one batch, from wherever they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.db.repositories.blocks import RunBatch, StoredBatch
from app.metrics import blocks, point_tables
from app.metrics.columns import Columns


@dataclass(frozen=True, slots=True)
class BatchPoints:
    """The points of a batch by the name of their series."""

    fence: int
    series: Mapping[str, Columns]


def read_batch(batch: RunBatch, stored: StoredBatch) -> BatchPoints:
    """Returns the points of a batch, without others that its blocks hold."""
    if stored.tables:
        tables = point_tables.decode(stored.tables)
        return BatchPoints(stored.fence, point_tables.join_series(tables))
    parts: dict[str, list[Columns]] = {}
    for name, content in stored.blocks:
        columns = blocks.decode(content)
        inside = (columns.seq >= batch.first_seq) & (columns.seq <= batch.last_seq)
        if bool(inside.any()):
            parts.setdefault(name, []).append(blocks.select(columns, inside))
    return BatchPoints(
        stored.fence, {name: blocks.concatenate(some) for name, some in parts.items()}
    )
