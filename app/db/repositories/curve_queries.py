"""Reads blocks of curves and their rollups for queries."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, String, bindparam, func, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of, is_listed, list_pairs
from app.db.models.curves import BlockRow, RollupRow, SeriesRow, TailRow
from app.db.prepared import Read, fetch_all
from app.db.repositories.blocks import Tail

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


async def load_parts(
    session: Session, keys: Collection[Key], run_ids: Collection[str], axis: str
) -> tuple[dict[Key, list[BlockHead]], list[Tail]]:
    """Returns what holds the points of series.

    Args:
        session: A session that reads.
        keys: The series.
        run_ids: Their runs.
        axis: Axis of the ranges of blocks.

    Returns:
        The blocks of each series, in order, and the tails of the runs as they arrived.
    """
    blocks, tails = await fetch_all(
        session,
        [
            Read(_select_heads(axis), {"pairs": keys}),
            Read(_select_tails(), {"ids": run_ids}, has_bytes=True),
        ],
    )
    found: dict[Key, list[BlockHead]] = {}
    for run_id, name, *head in blocks:
        found.setdefault((run_id, name), []).append(BlockHead(*head))
    for heads in found.values():
        heads.sort()
    return found, [Tail(*row) for row in tails]


@cache
def _select_heads(axis: str) -> Any:
    pairs, run_id, name = list_pairs(String())
    columns = (
        "fence", "attempt_id", "first_seq", "id", "series_id", "points", f"{axis}_low",
        f"{axis}_high", "env_step_high", "levels",
    )  # fmt: skip
    # A column that is read twice needs two names.
    chosen = [getattr(BlockRow, one).label(f"c{place}") for place, one in enumerate(columns)]
    return (
        select(SeriesRow.run_id, SeriesRow.name, *chosen)
        .select_from(pairs)
        .join(SeriesRow, (SeriesRow.run_id == run_id) & (SeriesRow.name == name))
        .join(BlockRow, BlockRow.series_id == SeriesRow.id)
    )


@cache
def _select_tails() -> Any:
    columns = ("id", "run_id", "attempt_id", "fence", "first_seq", "last_seq", "content")
    return (
        select(*(getattr(TailRow, name) for name in columns))
        .where(is_listed(TailRow.run_id))
        .order_by(TailRow.run_id, TailRow.id)
    )


async def load_rollups(
    session: Session, wanted: Collection[tuple[BlockHead, int]], axis: int
) -> dict[int, bytes]:
    """Returns the cells of blocks on a level of an axis for each, by the ID of the block."""
    levels: dict[int, list[tuple[int, int]]] = {}
    for block, level in wanted:
        levels.setdefault(level, []).append((block.series_id, block.id))
    reads = [
        Read(_select_rollups(), {"pairs": pairs, "axis": axis, "level": level}, has_bytes=True)
        for level, pairs in levels.items()
    ]
    found = await fetch_all(session, reads) if reads else []
    return {block_id: cells for rows in found for block_id, cells in rows}


@cache
def _select_rollups() -> Any:
    pairs, series_id, block_id = list_pairs(BigInteger())
    return (
        select(RollupRow.block_id, RollupRow.cells)
        .select_from(pairs)
        .join(
            RollupRow,
            (RollupRow.series_id == series_id)
            & (RollupRow.axis == bindparam("axis"))
            & (RollupRow.level == bindparam("level"))
            & (RollupRow.block_id == block_id),
        )
    )


async def load_first_walls(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns the earliest time in the blocks of each run, in milliseconds."""
    if not run_ids:
        return {}
    query = (
        select(SeriesRow.run_id, func.min(BlockRow.wall_low))
        .join(BlockRow, BlockRow.series_id == SeriesRow.id)
        .where(is_any_of(SeriesRow.run_id, run_ids))
        .group_by(SeriesRow.run_id)
    )
    return dict((await session.execute(query)).all())
