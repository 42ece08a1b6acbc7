"""Reads the stored points of a series, wherever they are stored."""

from typing import Any

from sqlalchemy import select

from app.db.engine import Session
from app.db.models.curves import BlockRow, SeriesRow
from app.db.repositories.blocks import load_tails
from app.metrics import blocks
from app.metrics.blocks import Columns


async def read_columns(session: Session, run_id: str, name: str) -> list[Columns]:
    """Returns the points of a series in the order (fence, attempt, record), as they are stored."""
    query = (
        select(BlockRow.fence, BlockRow.attempt_id, BlockRow.first_seq, BlockRow.content)
        .join(SeriesRow, SeriesRow.id == BlockRow.series_id)
        .where(SeriesRow.run_id == run_id, SeriesRow.name == name)
    )
    parts: list[Any] = list(await session.execute(query))
    for tail in await load_tails(session, [run_id]):
        content = b"PCT1%s\n%s" % (name.encode(), tail.content)
        parts.append((tail.fence, tail.attempt_id, tail.first_seq, content))
    columns = (blocks.decode(content) for *_, content in sorted(map(tuple, parts)))
    return [one for one in columns if len(one)]
