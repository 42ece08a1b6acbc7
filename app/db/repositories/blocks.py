"""Reads blocks of curves and logs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import and_, or_, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.curves import BlockRow, EvaluationRow, SeriesRow, TailRow
from app.db.models.experiments import RunRow
from app.db.models.logs import LogBlockRow
from palestra.contract.states import RunState


class RunBatch(NamedTuple):
    """The points of one run in one batch of an attempt."""

    run_id: str
    attempt_id: str
    first_seq: int
    """Number of the batch's first record."""
    last_seq: int
    """Number of its last record."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """What holds the points of a `RunBatch`: tables, or blocks that hold other points too."""

    fence: int
    tables: bytes = b""
    blocks: Sequence[tuple[str, bytes]] = ()
    """Names of series and contents, those of a series in order."""


async def load_batches(
    session: Session, wanted: Collection[RunBatch]
) -> dict[RunBatch, StoredBatch]:
    """Returns what holds the points of those of the given batches that are stored."""
    found: dict[RunBatch, StoredBatch] = {}
    if not wanted:
        return found
    by_key = {(one.run_id, one.attempt_id, one.first_seq): one for one in wanted}
    query = select(
        TailRow.run_id, TailRow.attempt_id, TailRow.first_seq, TailRow.fence, TailRow.content
    ).where(
        is_any_of(TailRow.run_id, {one.run_id for one in wanted}),
        TailRow.attempt_id.in_({one.attempt_id for one in wanted}),
        TailRow.first_seq >= min(one.first_seq for one in wanted),
        TailRow.first_seq <= max(one.first_seq for one in wanted),
    )
    for run_id, attempt_id, first_seq, fence, content in await session.execute(query):
        batch = by_key.get((run_id, attempt_id, first_seq))
        if batch is not None:
            found[batch] = StoredBatch(fence, content)
    for batch in by_key.values():
        if batch not in found:
            compacted = await _load_compacted_batch(session, batch)
            if compacted is not None:
                found[batch] = compacted
    return found


async def _load_compacted_batch(session: Session, batch: RunBatch) -> StoredBatch | None:
    query = (
        select(SeriesRow.name, BlockRow.fence, BlockRow.content)
        .join(SeriesRow, SeriesRow.id == BlockRow.series_id)
        .where(
            SeriesRow.run_id == batch.run_id,
            BlockRow.attempt_id == batch.attempt_id,
            BlockRow.first_seq <= batch.last_seq,
            BlockRow.last_seq >= batch.first_seq,
        )
        .order_by(BlockRow.series_id, BlockRow.first_seq)
    )
    stored = (await session.execute(query)).all()
    if not stored:
        return None
    return StoredBatch(stored[0].fence, blocks=[(row.name, row.content) for row in stored])


async def load_log_blocks(session: Session, ids: Collection[int]) -> Mapping[int, LogBlockRow]:
    """Returns blocks of logs by ID."""
    return (
        {
            block.id: block
            for block in await session.scalars(select(LogBlockRow).where(LogBlockRow.id.in_(ids)))
        }
        if ids
        else {}
    )


async def load_contents(session: Session, block_ids: Collection[int]) -> dict[int, bytes]:
    """Returns the contents of blocks by ID."""
    if not block_ids:
        return {}
    query = select(BlockRow.id, BlockRow.content).where(is_any_of(BlockRow.id, block_ids))
    return dict((await session.execute(query)).all())


async def filter_succeeded_runs(session: Session, run_ids: Collection[str]) -> frozenset[str]:
    """Returns which of the runs have succeeded."""
    if not run_ids:
        return frozenset()
    query = select(RunRow.id).where(
        is_any_of(RunRow.id, run_ids), RunRow.state == RunState.SUCCEEDED
    )
    return frozenset(await session.scalars(query))


@dataclass(frozen=True, slots=True)
class Tail:
    """Points of a run in one batch that are not in blocks yet."""

    id: int
    run_id: str
    attempt_id: str
    fence: int
    first_seq: int
    last_seq: int
    content: bytes


async def load_tails(
    session: Session,
    run_ids: Collection[str],
    limit: int | None = None,
    places: Mapping[str, int] | None = None,
) -> list[Tail]:
    """Returns the points of runs that are not in blocks yet, in the order of their arrival.

    Args:
        session: A session.
        run_ids: The runs.
        limit: Most batches.
        places: Leaves out the batches before the one that ends with the given record of an attempt.
    """
    if not run_ids:
        return []
    query = (
        select(
            TailRow.id,
            TailRow.run_id,
            TailRow.attempt_id,
            TailRow.fence,
            TailRow.first_seq,
            TailRow.last_seq,
            TailRow.content,
        )
        .where(is_any_of(TailRow.run_id, run_ids))
        .order_by(TailRow.run_id, TailRow.id)
        .limit(limit)
    )
    if places:
        later = [
            and_(TailRow.attempt_id == attempt_id, TailRow.last_seq >= seq)
            for attempt_id, seq in places.items()
        ]
        query = query.where(or_(TailRow.attempt_id.not_in(places), *later))
    return [Tail(*row) for row in await session.execute(query)]


async def list_evaluations(
    session: Session, run_ids: Collection[str], *, superseded: bool
) -> Sequence[EvaluationRow]:
    """Returns the evaluations of runs in the order (fence, record); superseded ones on request."""
    if not run_ids:
        return []
    query = (
        select(EvaluationRow)
        .where(is_any_of(EvaluationRow.run_id, run_ids))
        .order_by(EvaluationRow.run_id, EvaluationRow.fence, EvaluationRow.seq)
    )
    if not superseded:
        query = query.where(EvaluationRow.superseded.is_(False))
    return (await session.scalars(query)).all()


async def list_series_for_run(
    session: Session, run_id: str, after: str, limit: int
) -> Sequence[SeriesRow]:
    """Returns a run's series whose names follow `after`, by name."""
    query = (
        select(SeriesRow)
        .where(SeriesRow.run_id == run_id, SeriesRow.name > after)
        .order_by(SeriesRow.name)
        .limit(limit)
    )
    return (await session.scalars(query)).all()


async def list_log_blocks(
    session: Session, run_id: str, after: int, limit: int
) -> Sequence[LogBlockRow]:
    """Returns the blocks of a run's log that hold lines after an ordinal, in order."""
    query = select(LogBlockRow).where(LogBlockRow.run_id == run_id, LogBlockRow.last_line > after)
    return (await session.scalars(query.order_by(LogBlockRow.first_line).limit(limit))).all()
