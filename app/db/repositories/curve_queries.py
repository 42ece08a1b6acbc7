"""Reads blocks of curves and their rollups for queries."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select, tuple_

from app.db.engine import Session
from app.db.models.curves import BlockRow, RollupRow, SeriesRow
from app.db.repositories.value_lists import split_values

Key = tuple[str, str]
"""Run and name of a series."""


@dataclass(frozen=True, slots=True, order=True)
class BlockHead:
    """A block without its content; heads of a series are ordered as their points are."""

    fence: int
    attempt_id: str
    first_seq: int
    id: int
    series_id: int
    points: int
    low: int
    """Lowest position on the axis."""
    high: int
    """Highest position on the axis."""
    highest_env_step: int
    levels: int
    """See `BlockRow.levels`."""


async def load_block_heads(
    session: Session, keys: Collection[Key], axis: str
) -> dict[Key, list[BlockHead]]:
    """Returns the blocks of series, in order, with their ranges on an axis."""
    low, high = getattr(BlockRow, f"{axis}_low"), getattr(BlockRow, f"{axis}_high")
    found: dict[Key, list[BlockHead]] = {}
    for some in split_values(keys):
        series = tuple_(SeriesRow.run_id, SeriesRow.name).in_(some)
        query = (
            select(
                SeriesRow.run_id,
                SeriesRow.name,
                BlockRow.fence,
                BlockRow.attempt_id,
                BlockRow.first_seq,
                BlockRow.id,
                BlockRow.series_id,
                BlockRow.points,
                low,
                high,
                BlockRow.env_step_high,
                BlockRow.levels,
            )
            .join(BlockRow, BlockRow.series_id == SeriesRow.id)
            .where(series)
        )
        for run_id, name, *head in await session.execute(query):
            found.setdefault((run_id, name), []).append(BlockHead(*head))
    for heads in found.values():
        heads.sort()
    return found


async def load_contents(session: Session, block_ids: Collection[int]) -> dict[int, bytes]:
    """Returns the contents of blocks by ID."""
    found: dict[int, bytes] = {}
    for some in split_values(block_ids):
        query = select(BlockRow.id, BlockRow.content).where(BlockRow.id.in_(some))
        found.update((await session.execute(query)).all())
    return found


async def load_rollups(
    session: Session, blocks: Collection[BlockHead], axis: int, level: int
) -> dict[int, bytes]:
    """Returns the cells of blocks on one level of an axis, by the ID of the block."""
    wanted = {block.id for block in blocks}
    found: dict[int, bytes] = {}
    for some in split_values({block.series_id for block in blocks}):
        query = select(RollupRow.block_id, RollupRow.cells).where(
            RollupRow.series_id.in_(some),
            RollupRow.axis == axis,
            RollupRow.level == level,
            RollupRow.block_id >= min(wanted),
            RollupRow.block_id <= max(wanted),
        )
        rows = (await session.execute(query)).all()
        found |= {block_id: cells for block_id, cells in rows if block_id in wanted}
    return found


async def load_first_walls(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns the earliest time in the blocks of each run, in milliseconds."""
    found: dict[str, int] = {}
    for some in split_values(run_ids):
        query = (
            select(SeriesRow.run_id, func.min(BlockRow.wall_low))
            .join(BlockRow, BlockRow.series_id == SeriesRow.id)
            .where(SeriesRow.run_id.in_(some), BlockRow.levels >= 0)
            .group_by(SeriesRow.run_id)
        )
        found.update((await session.execute(query)).all())
    return found


async def load_unconverted(session: Session, run_ids: Collection[str]) -> list[tuple[str, bytes]]:
    """Returns the runs and contents of blocks of earlier versions, whose ranges are unknown."""
    found: list[tuple[str, bytes]] = []
    for some in split_values(run_ids):
        query = (
            select(SeriesRow.run_id, BlockRow.content)
            .join(BlockRow, BlockRow.series_id == SeriesRow.id)
            .where(SeriesRow.run_id.in_(some), BlockRow.levels < 0)
        )
        found += [(run_id, content) for run_id, content in await session.execute(query)]
    return found
