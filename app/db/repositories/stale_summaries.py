"""Runs whose summaries must be computed anew from all of their records."""

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    case,
    exists,
    func,
    literal,
    select,
    true,
    update,
)

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.models.summaries import RunSummaryRow, SeriesNameRow, SeriesSummaryRow
from app.db.upsert import insert_new_from

STALE: Final = -1
"""Fence of runs that must be summarised anew; lower ones stand for runs that lack crossings."""
_UNSUMMARISED: Final = 600.0
"""Seconds after the end of a run in which its last records may not be summarised yet."""


async def list_stale(session: Session, limit: int) -> list[str]:
    """Returns runs that must be summarised anew."""
    query = select(RunSummaryRow.run_id).where(RunSummaryRow.fence == STALE)
    return list(await session.scalars(query.order_by(RunSummaryRow.run_id).limit(limit)))


async def list_uncompared(session: Session, limit: int) -> list[str]:
    """Returns runs that are summarised but not compared with all thresholds of their project."""
    query = select(RunSummaryRow.run_id).where(RunSummaryRow.fence < STALE)
    return list(await session.scalars(query.order_by(RunSummaryRow.run_id).limit(limit)))


def read_compared_fence(fence: int) -> int:
    """Returns the fence of the history that is summarised, given that of an uncompared run."""
    return STALE - 1 - fence


async def count_stale(session: Session, project_id: str) -> int:
    """Returns how many runs of a project wait to be summarised anew or compared."""
    query = select(func.count()).select_from(RunSummaryRow)
    query = query.join(RunRow, RunRow.id == RunSummaryRow.run_id)
    query = query.where(RunSummaryRow.fence <= STALE, RunRow.project_id == project_id)
    return await session.scalar(query) or 0


async def mark_all(session: Session) -> int:
    """Lets all runs be summarised anew; returns their number."""
    await _add_missing(session, true())
    return await mark_stale(session, true())


async def mark_for_threshold(session: Session, project_id: str, series: str) -> int:
    """Lets the runs of a project that may have reached a new threshold be compared with it.

    These are the runs with a summary of the series, and those whose records may not be summarised
    yet: a summary of them that is being computed does not know the threshold.

    Args:
        session: A writing session.
        project_id: The project.
        series: Series of the threshold.

    Returns:
        The number of runs.
    """
    summarised = exists().where(
        SeriesSummaryRow.run_id == RunRow.id,
        SeriesSummaryRow.name_id == SeriesNameRow.id,
        SeriesNameRow.name == series,
    )
    is_recent = RunRow.finished_at.is_(None) | (RunRow.finished_at > db_now(-_UNSUMMARISED))
    is_of_project = RunRow.project_id == project_id
    await _add_missing(session, is_of_project & is_recent)
    runs = select(RunRow.id).where(is_of_project, summarised | is_recent)
    fence = RunSummaryRow.fence
    uncompared = case((fence > STALE, STALE - 1 - fence), else_=fence)
    return await _mark(session, RunSummaryRow.run_id.in_(runs), uncompared)


async def mark_stale(session: Session, which: ColumnElement[bool]) -> int:
    """Lets some runs be summarised anew; returns their number.

    Args:
        session: A writing session.
        which: Condition on `RunSummaryRow`.
    """
    return await _mark(session, which, STALE)


async def _mark(session: Session, which: ColumnElement[bool], fence: Any) -> int:
    statement = update(RunSummaryRow).where(which)
    statement = statement.values(fence=fence, version=RunSummaryRow.version + 1)
    result = await session.execute(statement.execution_options(synchronize_session=False))
    return result.rowcount if isinstance(result, CursorResult) else 0


async def _add_missing(session: Session, which: ColumnElement[bool]) -> None:
    """Adds rows for those of some runs that were never summarised."""
    known = select(RunSummaryRow.run_id)
    places: Any = literal({}, RunSummaryRow.places.type)
    missing = select(RunRow.id, literal(STALE), literal(0), places)
    missing = missing.where(which, RunRow.id.not_in(known))
    columns = ["run_id", "fence", "version", "places"]
    await session.execute(insert_new_from(session, RunSummaryRow, columns, missing))
