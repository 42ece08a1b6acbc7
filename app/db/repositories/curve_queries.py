"""Reads that queries of curves need beside the blocks themselves."""

from collections.abc import Collection

from sqlalchemy import func, select

from app.db.engine import Session
from app.db.models.curves import BlockRow, SeriesRow
from app.db.repositories.value_lists import split_values


async def load_first_blocks(session: Session, run_ids: Collection[str]) -> dict[str, bytes]:
    """Returns the content of the block that arrived first, for each run that has one."""
    found: dict[str, bytes] = {}
    for some in split_values(run_ids):
        firsts = (
            select(SeriesRow.run_id, func.min(BlockRow.id).label("block_id"))
            .join(BlockRow, BlockRow.series_id == SeriesRow.id)
            .where(SeriesRow.run_id.in_(some))
            .group_by(SeriesRow.run_id)
            .subquery()
        )
        query = select(firsts.c.run_id, BlockRow.content).join(
            firsts, firsts.c.block_id == BlockRow.id
        )
        found.update((await session.execute(query)).all())
    return found
