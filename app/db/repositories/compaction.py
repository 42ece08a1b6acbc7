"""Reads tails and blocks of curves for the compactor, and replaces them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import CursorResult, Table, delete, func, insert, or_, select

from app.db import prepared
from app.db.clock import db_now
from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.curves import BlockRow, RollupRow, SeriesRow, TailRow, TelemetryBatchRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.prepared import Write
from palestra.contract.states import LIVE_ATTEMPT_STATES

BlockKey = tuple[int, int, str]
"""Series, fence and attempt: blocks with the same key follow each other."""

SeriesKey = tuple[str, str]
"""Run and name."""

_ADD_BLOCKS: Final = insert(cast("Table", BlockRow.__table__))
_ADD_ROLLUPS: Final = insert(cast("Table", RollupRow.__table__))


class OutdatedError(Exception):
    """What a compaction read has changed, so that nothing was written."""


class BlockSize(NamedTuple):
    """Size of a stored block."""

    id: int
    points: int
    levels: int
    """See `BlockRow.levels`."""


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to store."""

    key: BlockKey
    values: Mapping[str, Any]
    """Values of the columns that the key does not hold."""
    cells: Mapping[tuple[int, int], bytes]
    """Encoded cells by place of the axis and level."""


class TailLength(NamedTuple):
    """The points of a run that are not in blocks."""

    run_id: str
    batches: int
    points: int


async def list_tails(session: Session, batches: int, seconds: float) -> list[TailLength]:
    """Returns the runs with at least that many batches in their tail, or with an older one."""
    query = (
        select(TailRow.run_id, func.count(), func.sum(TailRow.points))
        .group_by(TailRow.run_id)
        .having(or_(func.count() >= batches, func.min(TailRow.received_at) < db_now(-seconds)))
    )
    return [TailLength(*row) for row in await session.execute(query)]


async def count_tails(session: Session) -> int:
    """Returns the number of batches that are not in blocks."""
    return await session.scalar(select(func.count()).select_from(TailRow)) or 0


async def count_tails_by_run(session: Session) -> dict[str, int]:
    """Returns the number of batches of each run that are not in blocks."""
    query = select(TailRow.run_id, func.count()).group_by(TailRow.run_id)
    return dict((await session.execute(query)).all())


async def load_series_ids(session: Session, run_ids: Collection[str]) -> dict[SeriesKey, int]:
    """Returns the IDs of the series of runs."""
    if not run_ids:
        return {}
    query = select(SeriesRow.run_id, SeriesRow.name, SeriesRow.id)
    return {
        (run_id, name): series_id
        for run_id, name, series_id in await session.execute(
            query.where(is_any_of(SeriesRow.run_id, run_ids))
        )
    }


async def load_sizes(
    session: Session, series_ids: Collection[int]
) -> dict[BlockKey, list[BlockSize]]:
    """Returns the sizes of the blocks of series, in order."""
    found: dict[BlockKey, list[BlockSize]] = {}
    if not series_ids:
        return found
    query = (
        select(
            BlockRow.series_id,
            BlockRow.fence,
            BlockRow.attempt_id,
            BlockRow.id,
            BlockRow.points,
            BlockRow.levels,
        )
        .where(is_any_of(BlockRow.series_id, series_ids))
        .order_by(BlockRow.series_id, BlockRow.fence, BlockRow.attempt_id, BlockRow.first_seq)
    )
    for series_id, fence, attempt_id, block_id, points, levels in await session.execute(query):
        size = BlockSize(block_id, points, levels)
        found.setdefault((series_id, fence, attempt_id), []).append(size)
    return found


async def replace(
    session: Session,
    tail_ids: Collection[int],
    block_ids: Collection[int],
    added: Sequence[NewBlock],
) -> None:
    """Deletes tails and blocks, and adds the blocks that hold their points.

    Raises:
        OutdatedError: If a tail or a block is gone.
    """
    await _delete_all(session, TailRow, tail_ids)
    await _delete_all(session, BlockRow, block_ids)
    if block_ids:
        await session.execute(
            delete(RollupRow)
            .where(
                is_any_of(RollupRow.series_id, {block.key[0] for block in added}),
                is_any_of(RollupRow.block_id, block_ids),
            )
            .execution_options(synchronize_session=False)
        )
    blocks = [_row(block) for block in added]
    await prepared.write(session, [Write(_ADD_BLOCKS, blocks)])
    with_rollups = [block for block in added if block.cells]
    if not with_rollups:
        return
    ids = await _load_ids(session, with_rollups)
    cells = [
        {
            "series_id": block.key[0],
            "axis": axis,
            "level": level,
            "block_id": ids[*block.key, block.values["first_seq"]],
            "cells": content,
        }
        for block in with_rollups
        for (axis, level), content in block.cells.items()
    ]
    await prepared.write(session, [Write(_ADD_ROLLUPS, cells)])


async def list_ended_attempts(session: Session, limit: int) -> list[str]:
    """Returns attempts that have ended and still have digests of their records."""
    first = select(func.min(TelemetryBatchRow.attempt_id).label("attempt_id"))
    holding = first.cte("holding", recursive=True)
    following = (
        select(func.min(TelemetryBatchRow.attempt_id))
        .where(TelemetryBatchRow.attempt_id > holding.c.attempt_id)
        .scalar_subquery()
    )
    # One look-up per attempt with digests: there are few, but they may have many rows.
    holding = holding.union_all(select(following).where(holding.c.attempt_id.is_not(None)))
    query = (
        select(AttemptRow.id)
        .join(holding, holding.c.attempt_id == AttemptRow.id)
        .where(AttemptRow.state.not_in(LIVE_ATTEMPT_STATES))
        .limit(limit)
    )
    return list(await session.scalars(query))


async def list_runs(session: Session, attempt_id: str) -> list[str]:
    """Returns the IDs of the runs of an attempt."""
    query = select(AttemptRunRow.run_id).where(AttemptRunRow.attempt_id == attempt_id)
    return list(await session.scalars(query))


async def forget_digests(session: Session, attempt_id: str) -> int:
    """Deletes the digests of an attempt's records; returns the number of batches."""
    statement = delete(TelemetryBatchRow).where(TelemetryBatchRow.attempt_id == attempt_id)
    result = await session.execute(statement.execution_options(synchronize_session=False))
    return result.rowcount if isinstance(result, CursorResult) else 0


async def _delete_all(session: Session, row: type[Any], ids: Collection[int]) -> None:
    if not ids:
        return
    statement = delete(row).where(is_any_of(row.id, ids))
    result = await session.execute(statement.execution_options(synchronize_session=False))
    if isinstance(result, CursorResult) and result.rowcount != len(ids):
        raise OutdatedError


async def _load_ids(
    session: Session, added: Sequence[NewBlock]
) -> dict[tuple[int, int, str, int], int]:
    """Returns the IDs of blocks by key and first record."""
    block = BlockRow
    query = select(block.series_id, block.fence, block.attempt_id, block.first_seq, block.id)
    query = query.where(
        is_any_of(block.series_id, {one.key[0] for one in added}),
        is_any_of(block.first_seq, {one.values["first_seq"] for one in added}),
    )
    return {
        (row.series_id, row.fence, row.attempt_id, row.first_seq): row.id
        for row in await session.execute(query)
    }


def _row(block: NewBlock) -> dict[str, Any]:
    series_id, fence, attempt_id = block.key
    return {"series_id": series_id, "fence": fence, "attempt_id": attempt_id, **block.values}
