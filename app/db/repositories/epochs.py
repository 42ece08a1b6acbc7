"""Reads and replaces the statistics of epochs: rows as they arrived, and blocks of older ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import CursorResult, Table, delete, exists, func, insert, or_, select, tuple_

from app.db import prepared
from app.db.engine import Session
from app.db.models.curves import EpochBlockRow, EpochStatsRow
from app.db.models.jobs import AttemptRunRow
from app.db.prepared import Write
from app.db.repositories.compaction import OutdatedError

_ADD_BLOCKS: Final = insert(cast("Table", EpochBlockRow.__table__))


class EpochKey(NamedTuple):
    """A record of a run; its epochs are in the order of these keys."""

    fence: int
    seq: int


class StoredEpoch(NamedTuple):
    """An epoch that is not in a block."""

    run_id: str
    attempt_id: str
    fence: int
    seq: int
    body: str
    """The record as JSON text."""


class EpochBlock(NamedTuple):
    """A block of epochs of a run from one attempt."""

    id: int
    run_id: str
    attempt_id: str
    fence: int
    content: bytes
    """See `app.metrics.epoch_blocks`."""


async def read_next(
    session: Session, run_id: str, after: EpochKey | None, limit: int
) -> EpochBlock | list[StoredEpoch]:
    """Returns what holds the epochs of a run that follow a record.

    Returns:
        A block, which may begin with epochs up to the record; or at most `limit` epochs that are
        not in blocks, none if nothing follows.
    """
    block, row = EpochBlockRow, EpochStatsRow
    blocks = select(*_BLOCK).where(block.run_id == run_id)
    rows = select(*_ROW).where(row.run_id == run_id)
    if after is not None:
        blocks = blocks.where(tuple_(block.fence, block.last_seq) > tuple_(*after))
        rows = rows.where(tuple_(row.fence, row.seq) > tuple_(*after))
    found = (await session.execute(blocks.order_by(block.fence, block.first_seq).limit(1))).first()
    if found is not None:
        # An attempt's rows follow its blocks, so only rows of earlier attempts come first.
        rows = rows.where(row.fence < found.fence)
    listed = await session.execute(rows.order_by(row.fence, row.seq).limit(limit))
    epochs = [StoredEpoch(*one) for one in listed]
    return epochs if epochs or found is None else EpochBlock(*found)


async def count(session: Session, run_id: str) -> int:
    """Returns the number of epochs of a run, in blocks or not."""
    in_blocks = select(func.sum(EpochBlockRow.epochs)).where(EpochBlockRow.run_id == run_id)
    others = select(func.count()).where(EpochStatsRow.run_id == run_id)
    return (await session.scalar(in_blocks) or 0) + (await session.scalar(others) or 0)


async def list_compactable(session: Session, least: int, limit: int) -> list[str]:
    """Returns runs with epochs outside of blocks that are many, or to which none are added.

    Args:
        session: A session.
        least: Number of epochs from which those of a run that is being trained are moved.
        limit: Most runs to return.
    """
    row = EpochStatsRow
    first = select(func.min(row.run_id).label("run_id"))
    holding = first.cte("holding", recursive=True)
    following = select(func.min(row.run_id)).where(row.run_id > holding.c.run_id).scalar_subquery()
    # One look-up per run: counting all rows would read those that are not moved yet each time.
    holding = holding.union_all(select(following).where(holding.c.run_id.is_not(None)))
    last_of_many = (
        select(row.seq).where(row.run_id == holding.c.run_id).limit(1).offset(least - 1)
    ).scalar_subquery()
    is_trained = exists().where(
        AttemptRunRow.run_id == holding.c.run_id, AttemptRunRow.live_training
    )
    query = (
        select(holding.c.run_id)
        .where(holding.c.run_id.is_not(None), or_(~is_trained, last_of_many.is_not(None)))
        .limit(limit)
    )
    return list(await session.scalars(query))


async def load_oldest(session: Session, run_id: str, limit: int) -> list[StoredEpoch]:
    """Returns the first epochs of a run that are not in blocks."""
    row = EpochStatsRow
    query = select(*_ROW).where(row.run_id == run_id).order_by(row.fence, row.seq).limit(limit)
    return [StoredEpoch(*one) for one in await session.execute(query)]


async def find_last_block(session: Session, run_id: str, complete: int) -> EpochBlock | None:
    """Returns the last block of a run, if it has fewer than `complete` bytes of text."""
    block = EpochBlockRow
    last = (
        select(*_BLOCK, block.text_bytes)
        .where(block.run_id == run_id)
        .order_by(block.fence.desc(), block.first_seq.desc())
        .limit(1)
    )
    found = (await session.execute(last)).first()
    return None if found is None or found.text_bytes >= complete else EpochBlock(*found[:-1])


async def replace(
    session: Session,
    moved: Sequence[StoredEpoch],
    continued: EpochBlock | None,
    added: Sequence[Mapping[str, Any]],
) -> None:
    """Deletes rows and the block that they continue, and adds the blocks that hold their epochs.

    Args:
        session: A writing session.
        moved: The first epochs of a run that are not in blocks.
        continued: The block to delete, if any.
        added: Values of the columns of new blocks.

    Raises:
        OutdatedError: If a row or the block is gone.
    """
    row = EpochStatsRow
    first, last = moved[0], moved[-1]
    rows = delete(row).where(
        row.run_id == first.run_id,
        tuple_(row.fence, row.seq) >= tuple_(first.fence, first.seq),
        tuple_(row.fence, row.seq) <= tuple_(last.fence, last.seq),
    )
    await _delete(session, rows, len(moved))
    if continued is not None:
        await _delete(session, delete(EpochBlockRow).where(EpochBlockRow.id == continued.id), 1)
    await prepared.write(session, [Write(_ADD_BLOCKS, list(added))])


async def _delete(session: Session, statement: Any, expected: int) -> None:
    result = await session.execute(statement.execution_options(synchronize_session=False))
    if isinstance(result, CursorResult) and result.rowcount != expected:
        raise OutdatedError


_ROW: Final = (
    EpochStatsRow.run_id,
    EpochStatsRow.attempt_id,
    EpochStatsRow.fence,
    EpochStatsRow.seq,
    EpochStatsRow.body,
)
_BLOCK: Final = (
    EpochBlockRow.id,
    EpochBlockRow.run_id,
    EpochBlockRow.attempt_id,
    EpochBlockRow.fence,
    EpochBlockRow.content,
)
