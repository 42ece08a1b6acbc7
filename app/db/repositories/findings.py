"""Rows of the findings of runs, and which runs are to be judged."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import case, delete, insert, select, update

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.summaries import FindingRow, RunSummaryRow


async def list_unjudged(session: Session, limit: int) -> list[str]:
    """Returns runs whose summaries changed since they were judged, those never judged last."""
    query = select(RunSummaryRow.run_id).where(
        RunSummaryRow.judged_version != RunSummaryRow.version
    )
    order = RunSummaryRow.judged_version == -1, RunSummaryRow.run_id.desc()
    return list(await session.scalars(query.order_by(*order).limit(limit)))


async def load_versions(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns the versions of the summaries of those runs that have one."""
    query = select(RunSummaryRow.run_id, RunSummaryRow.version)
    found = await session.execute(query.where(RunSummaryRow.run_id.in_(run_ids)))
    return dict(found.all())


async def load(session: Session, run_ids: Collection[str]) -> dict[str, list[FindingRow]]:
    """Returns the findings of those runs that have one, the gravest first."""
    if not run_ids:
        return {}
    found: dict[str, list[FindingRow]] = {}
    order = FindingRow.run_id, FindingRow.place
    query = select(FindingRow).where(is_any_of(FindingRow.run_id, run_ids)).order_by(*order)
    for row in await session.scalars(query.execution_options(populate_existing=True)):
        found.setdefault(row.run_id, []).append(row)
    return found


async def mark_judged(session: Session, versions: Mapping[str, int]) -> set[str]:
    """Stores the versions of the summaries that were judged, by run ID.

    Returns the runs of which no later version was judged before. The rows are locked in the order
    of their IDs, as the summariser does.
    """
    ours = RunSummaryRow.run_id.in_(versions)
    query = select(RunSummaryRow.run_id, RunSummaryRow.judged_version).where(ours)
    query = query.order_by(RunSummaryRow.run_id).with_for_update()
    newer = {
        run_id
        for run_id, judged in (await session.execute(query)).all()
        if judged < versions[run_id]
    }
    if newer:
        version = case({run_id: versions[run_id] for run_id in newer}, value=RunSummaryRow.run_id)
        await session.execute(
            update(RunSummaryRow)
            .where(RunSummaryRow.run_id.in_(newer))
            .values(judged_version=version)
            .execution_options(synchronize_session=False)
        )
    return newer


async def replace(session: Session, run_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the findings of a run; `rows` holds columns of `FindingRow` but run and place."""
    old = delete(FindingRow).where(FindingRow.run_id == run_id)
    await session.execute(old.execution_options(synchronize_session=False))
    if rows:
        placed = [{"run_id": run_id, "place": place, **row} for place, row in enumerate(rows)]
        await session.execute(insert(FindingRow), placed)
