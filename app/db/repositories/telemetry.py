"""Rows that the ingest writes: batches, series and their blocks, log lines, epochs, evaluations."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import func, insert, select, tuple_, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.curves import (
    EpochStatsRow,
    EvaluationRow,
    SeriesRow,
    TailRow,
    TelemetryBatchRow,
)
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow
from app.db.models.logs import LogBlockRow
from app.db.repositories.value_lists import split_values

SeriesKey = tuple[str, str]
"""Run and name."""

_MOST_SURPLUS: Final = 4
"""How many times as many series as are wanted one query may find."""


async def lock_runs(session: Session, run_ids: Collection[str]) -> Mapping[str, RunRow]:
    """Returns runs, locked against other ingests and claims, always in the same order."""
    query = (
        select(RunRow)
        .where(RunRow.id.in_(run_ids))
        .order_by(RunRow.id)
        .with_for_update(key_share=True)
    )
    return {
        run.id: run
        for run in await session.scalars(query.execution_options(populate_existing=True))
    }


async def list_batches(
    session: Session, attempt_id: str, first_seq: int, last_seq: int
) -> Sequence[TelemetryBatchRow]:
    """Returns an attempt's committed batches that hold records from `first_seq` to `last_seq`."""
    query = select(TelemetryBatchRow).where(
        TelemetryBatchRow.attempt_id == attempt_id,
        TelemetryBatchRow.first_seq <= last_seq,
        TelemetryBatchRow.last_seq >= first_seq,
    )
    return (await session.scalars(query.order_by(TelemetryBatchRow.first_seq))).all()


async def load_last_received(
    session: Session, attempt_ids: Collection[str]
) -> tuple[dict[str, datetime], datetime]:
    """Returns the time of each attempt's latest batch and the time now, by the database's clock."""
    latest = (
        select(TelemetryBatchRow.received_at)
        .where(TelemetryBatchRow.attempt_id == AttemptRow.id)
        .order_by(TelemetryBatchRow.first_seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = select(AttemptRow.id, latest, db_now()).where(AttemptRow.id.in_(attempt_ids))
    found = (await session.execute(query)).all()
    received = {attempt_id: at for attempt_id, at, _ in found if at is not None}
    return received, found[0][2]


class SeriesTotals(NamedTuple):
    """The ID of a series, and the number of its points."""

    id: int
    points: int
    nonfinite: int


async def load_series(
    session: Session, keys: Collection[SeriesKey]
) -> dict[SeriesKey, SeriesTotals]:
    """Returns those series of `keys` that exist."""
    query = select(
        SeriesRow.run_id, SeriesRow.name, SeriesRow.id, SeriesRow.points, SeriesRow.nonfinite
    )
    runs, names = {run_id for run_id, _ in keys}, {name for _, name in keys}
    # SQLAlchemy takes ten times as long to write a list of pairs as two lists. Where few runs have
    # the same names, the two lists would find too many series.
    if len(runs) * len(names) <= _MOST_SURPLUS * len(keys):
        queries = [
            query.where(SeriesRow.run_id.in_(runs), SeriesRow.name.in_(some))
            for some in split_values(names)
        ]
    else:
        queries = [
            query.where(tuple_(SeriesRow.run_id, SeriesRow.name).in_(some))
            for some in split_values(keys)
        ]
    wanted = set(keys)
    return {
        (run_id, name): SeriesTotals(*totals)
        for one in queries
        for run_id, name, *totals in await session.execute(one)
        if (run_id, name) in wanted
    }


async def count_series(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns how many series each run has."""
    query = (
        select(SeriesRow.run_id, func.count())
        .where(SeriesRow.run_id.in_(run_ids))
        .group_by(SeriesRow.run_id)
    )
    return dict((await session.execute(query)).all())


async def add_series(session: Session, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Adds series; returns their ids in the same order."""
    statement = insert(SeriesRow).returning(SeriesRow.id, sort_by_parameter_order=True)
    return list(await session.scalars(statement, list(rows))) if rows else []


async def update_series(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the summaries of series; each row has its `id`."""
    if rows:
        await session.execute(update(SeriesRow), list(rows))


async def add_tails(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds the points of runs in batches."""
    if rows:
        await session.execute(insert(TailRow), list(rows))


async def add_batches(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds the rows of batches, with the numbers and digests of their records."""
    await session.execute(insert(TelemetryBatchRow), list(rows))


async def add_stats(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds statistics of epochs."""
    if rows:
        await session.execute(insert(EpochStatsRow), list(rows))


async def add_evaluations(
    session: Session, rows: Sequence[Mapping[str, Any]]
) -> Sequence[EvaluationRow]:
    """Adds evaluations; returns them in the same order."""
    found = [EvaluationRow(**row) for row in rows]
    session.add_all(found)
    await session.flush()
    return found


async def read_log_end(session: Session, run_id: str) -> tuple[int, int]:
    """Returns the last line of a run's log and the bytes of all its lines."""
    query = select(LogBlockRow.last_line, LogBlockRow.total_bytes).where(
        LogBlockRow.run_id == run_id
    )
    row = (await session.execute(query.order_by(LogBlockRow.first_line.desc()).limit(1))).first()
    return (0, 0) if row is None else (row[0], row[1])


async def add_log(session: Session, row: Mapping[str, Any]) -> int:
    """Adds log lines as a block; returns the ID of the block."""
    found: int = (
        await session.execute(insert(LogBlockRow).returning(LogBlockRow.id), [dict(row)])
    ).scalar_one()
    return found
