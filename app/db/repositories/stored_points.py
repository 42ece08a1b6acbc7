"""Reads the points of a run for exports: where they are stored, from one record of it on."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.curves import BlockRow, EvaluationRow, SeriesRow, TailRow
from app.db.models.jobs import AttemptRow, AttemptRunRow


class RecordKey(NamedTuple):
    """A record of an attempt; points of a series are in the order of their records."""

    fence: int
    attempt_id: str
    seq: int


class StoredSeries(NamedTuple):
    """A series and the number of its points."""

    id: int
    name: str
    points: int


class StoredPart(NamedTuple):
    """A block of a series, or a batch of a run that is not in blocks yet."""

    first: RecordKey
    last: RecordKey
    points: int
    id: int
    series_id: int | None
    """`None` for a batch, which may hold points of every series."""


class StoredEvaluation(NamedTuple):
    """An evaluation without its body."""

    id: str
    attempt_id: str
    fence: int
    seq: int
    superseded: bool


async def list_series(
    session: Session, run_id: str, names: Collection[str] | None
) -> list[StoredSeries]:
    """Returns the series of a run by name; those in `names`, if given."""
    query = select(SeriesRow.id, SeriesRow.name, SeriesRow.points).where(SeriesRow.run_id == run_id)
    rows = [StoredSeries(*row) for row in await session.execute(query)]
    return sorted(
        (row for row in rows if names is None or row.name in names), key=lambda row: row.name
    )


async def load_acked(session: Session, run_id: str) -> dict[str, int]:
    """Returns the last committed record of each attempt of a run."""
    query = (
        select(AttemptRow.id, AttemptRow.acked_seq)
        .join(AttemptRunRow, AttemptRunRow.attempt_id == AttemptRow.id)
        .where(AttemptRunRow.run_id == run_id)
    )
    return dict((await session.execute(query)).all())


async def list_parts(
    session: Session, run_id: str, series_ids: Collection[int], after: RecordKey | None
) -> list[StoredPart]:
    """Returns what holds the points of series that follow a record, in the order of the points."""
    blocks = select(
        BlockRow.fence,
        BlockRow.attempt_id,
        BlockRow.first_seq,
        BlockRow.last_seq,
        BlockRow.points,
        BlockRow.id,
        BlockRow.series_id,
    ).where(is_any_of(BlockRow.series_id, series_ids), *_follows(BlockRow, after))
    found = [_part(*row) for row in await session.execute(blocks)]
    tails = select(
        TailRow.fence,
        TailRow.attempt_id,
        TailRow.first_seq,
        TailRow.last_seq,
        TailRow.points,
        TailRow.id,
    ).where(TailRow.run_id == run_id, *_follows(TailRow, after))
    found += [_part(*row, series_id=None) for row in await session.execute(tails)]
    return sorted(found, key=lambda part: part.first)


async def load_tails(session: Session, ids: Collection[int]) -> dict[int, bytes]:
    """Returns the contents of batches that are not in blocks, by ID."""
    query = select(TailRow.id, TailRow.content).where(TailRow.id.in_(ids))
    return dict((await session.execute(query)).all())


async def list_evaluations(session: Session, run_id: str) -> list[StoredEvaluation]:
    """Returns the evaluations of a run in the order (fence, record)."""
    query = (
        select(
            EvaluationRow.id,
            EvaluationRow.attempt_id,
            EvaluationRow.fence,
            EvaluationRow.seq,
            EvaluationRow.superseded,
        )
        .where(EvaluationRow.run_id == run_id)
        .order_by(EvaluationRow.fence, EvaluationRow.seq, EvaluationRow.id)
    )
    return [StoredEvaluation(*row) for row in await session.execute(query)]


async def load_evaluation_bodies(session: Session, ids: Collection[str]) -> dict[str, str]:
    """Returns the records of evaluations as JSON, by ID."""
    query = select(EvaluationRow.id, EvaluationRow.body).where(EvaluationRow.id.in_(ids))
    return dict((await session.execute(query)).all())


def _follows(row: Any, after: RecordKey | None) -> tuple[ColumnElement[bool], ...]:
    if after is None:
        return ()
    same_fence = row.fence == after.fence
    same_attempt = and_(same_fence, row.attempt_id == after.attempt_id)
    return (
        or_(
            row.fence > after.fence,
            and_(same_fence, row.attempt_id > after.attempt_id),
            and_(same_attempt, row.last_seq > after.seq),
        ),
    )


def _part(  # noqa: PLR0913, PLR0917 - the columns of the two statements
    fence: int,
    attempt_id: str,
    first_seq: int,
    last_seq: int,
    points: int,
    part_id: int,
    series_id: int | None,
) -> StoredPart:
    first = RecordKey(fence, attempt_id, first_seq)
    return StoredPart(first, first._replace(seq=last_seq), points, part_id, series_id)
