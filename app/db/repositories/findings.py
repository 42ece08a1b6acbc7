"""Rows of the findings of runs, and which runs are to be judged."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from app.db.engine import Session
from app.db.models.summaries import FindingRow, RunSummaryRow
from app.db.repositories.value_lists import split_values


async def list_unjudged(session: Session, limit: int) -> list[str]:
    """Returns runs whose summaries changed since they were judged, those never judged last."""
    query = select(RunSummaryRow.run_id).where(
        RunSummaryRow.judged_version != RunSummaryRow.version
    )
    order = RunSummaryRow.judged_version == -1, RunSummaryRow.run_id.desc()
    return list(await session.scalars(query.order_by(*order).limit(limit)))


async def read_version(session: Session, run_id: str) -> int | None:
    """Returns the version of the summary of a run; `None` without a summary."""
    query = select(RunSummaryRow.version).where(RunSummaryRow.run_id == run_id)
    return await session.scalar(query)


async def load(session: Session, run_ids: Collection[str]) -> dict[str, list[FindingRow]]:
    """Returns the findings of those runs that have one, the gravest first."""
    found: dict[str, list[FindingRow]] = {}
    order = FindingRow.run_id, FindingRow.place
    for some in split_values(run_ids):
        query = select(FindingRow).where(FindingRow.run_id.in_(some)).order_by(*order)
        for row in await session.scalars(query.execution_options(populate_existing=True)):
            found.setdefault(row.run_id, []).append(row)
    return found


async def mark_judged(session: Session, run_id: str, version: int) -> bool:
    """Stores the version of the summary that was judged.

    Returns whether no later version was judged before.
    """
    judged = await session.execute(
        update(RunSummaryRow)
        .where(RunSummaryRow.run_id == run_id, RunSummaryRow.judged_version < version)
        .values(judged_version=version)
        .returning(RunSummaryRow.run_id)
        .execution_options(synchronize_session=False)
    )
    return judged.first() is not None


async def replace(session: Session, run_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the findings of a run; `rows` holds columns of `FindingRow` but run and place."""
    old = delete(FindingRow).where(FindingRow.run_id == run_id)
    await session.execute(old.execution_options(synchronize_session=False))
    if rows:
        placed = [{"run_id": run_id, "place": place, **row} for place, row in enumerate(rows)]
        await session.execute(insert(FindingRow), placed)
