"""Rows of the thresholds of projects."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, select

from app.db.engine import Session
from app.db.models.summaries import ThresholdCrossingRow, ThresholdRow


async def list_of_project(session: Session, project_id: str) -> Sequence[ThresholdRow]:
    """Returns the thresholds of a project by name."""
    query = select(ThresholdRow).where(ThresholdRow.project_id == project_id)
    return (await session.scalars(query.order_by(ThresholdRow.name))).all()


async def count_runs(session: Session, threshold_ids: Collection[int]) -> dict[int, int]:
    """Returns how many runs have reached thresholds, by ID of the threshold."""
    row = ThresholdCrossingRow
    query = select(row.threshold_id, func.count()).where(row.threshold_id.in_(threshold_ids))
    return dict((await session.execute(query.group_by(row.threshold_id))).all())


async def insert(session: Session, values: Mapping[str, Any]) -> ThresholdRow:
    """Adds a threshold."""
    row = ThresholdRow(**values)
    session.add(row)
    await session.flush()
    return row


async def remove(session: Session, threshold_id: int) -> None:
    """Removes a threshold and its crossings."""
    for row, column in (
        (ThresholdCrossingRow, ThresholdCrossingRow.threshold_id),
        (ThresholdRow, ThresholdRow.id),
    ):
        await session.execute(
            delete(row).where(column == threshold_id).execution_options(synchronize_session=False)
        )


async def find_ids(
    session: Session, project_ids: Collection[str], names: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Returns the IDs of the thresholds with some names, at most one in each project."""
    found: dict[str, tuple[int, ...]] = {}
    query = select(ThresholdRow.name, ThresholdRow.id).where(
        ThresholdRow.project_id.in_(project_ids), ThresholdRow.name.in_(names)
    )
    for name, threshold_id in await session.execute(query):
        found[name] = (*found.get(name, ()), threshold_id)
    return found


async def list_names(session: Session, project_ids: Collection[str]) -> list[str]:
    """Returns the names of the thresholds of projects."""
    query = select(ThresholdRow.name).where(ThresholdRow.project_id.in_(project_ids)).distinct()
    return list(await session.scalars(query.order_by(ThresholdRow.name)))
