"""What the fields of a filter may name: series and members of definitions that exist."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, exists, select

from app.db.engine import Session
from app.db.models.summaries import (
    DefinitionMemberRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
)
from app.db.repositories.value_lists import split_values


async def find_series(
    session: Session, project_ids: Collection[str], names: Collection[str]
) -> dict[str, int]:
    """Returns the IDs of those names of series that runs of the projects have."""
    found: dict[str, int] = {}
    for some in split_values(names):
        query = select(SeriesNameRow.name, SeriesNameRow.id).where(
            SeriesNameRow.name.in_(some), _is_used(project_ids)
        )
        found |= dict((await session.execute(query)).all())
    return found


async def list_series(session: Session, project_ids: Collection[str], limit: int) -> list[str]:
    """Returns names of series that runs of the projects have."""
    query = select(SeriesNameRow.name).where(_is_used(project_ids)).order_by(SeriesNameRow.name)
    return list(await session.scalars(query.limit(limit)))


def _is_used(project_ids: Collection[str]) -> ColumnElement[bool]:
    setups = select(SetupRow.id).where(SetupRow.project_id.in_(project_ids))
    return exists().where(
        SeriesSummaryRow.name_id == SeriesNameRow.id, SeriesSummaryRow.setup_id.in_(setups)
    )


async def find_members(
    session: Session, project_ids: Collection[str], paths: Collection[str]
) -> set[str]:
    """Returns those paths that definitions of the projects have."""
    row = DefinitionMemberRow
    found: set[str] = set()
    for path in paths:
        query = select(row.path).where(row.path == path, row.project_id.in_(project_ids))
        found.update(await session.scalars(query.limit(1)))
    return found


async def list_members(session: Session, project_ids: Collection[str], limit: int) -> list[str]:
    """Returns paths of members that definitions of the projects have."""
    row = DefinitionMemberRow
    query = select(row.path).where(row.project_id.in_(project_ids)).distinct()
    return list(await session.scalars(query.order_by(row.path).limit(limit)))
