"""What the fields of a filter may name: series and members of definitions that exist."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, exists, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.summaries import (
    DefinitionMemberRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
)
from app.db.repositories.filter_conditions import build_setup_condition, is_about_setup
from app.db.repositories.list_scope import ListScope
from palestra.contract.filters import Term


async def find_series(
    session: Session, project_ids: Collection[str], names: Collection[str]
) -> dict[str, int]:
    """Returns the IDs of those names of series that runs of the projects have."""
    if not names:
        return {}
    query = select(SeriesNameRow.name, SeriesNameRow.id).where(
        is_any_of(SeriesNameRow.name, names), _is_used(project_ids)
    )
    return dict((await session.execute(query)).all())


async def list_series(session: Session, project_ids: Collection[str], limit: int) -> list[str]:
    """Returns names of series that runs of the projects have."""
    query = select(SeriesNameRow.name).where(_is_used(project_ids)).order_by(SeriesNameRow.name)
    return list(await session.scalars(query.limit(limit)))


async def list_series_of_runs(session: Session, run_ids: Collection[str]) -> list[str]:
    """Returns names of the series that the runs have, in order."""
    if not run_ids:
        return []
    used = select(SeriesSummaryRow.name_id).where(is_any_of(SeriesSummaryRow.run_id, run_ids))
    query = select(SeriesNameRow.name).where(SeriesNameRow.id.in_(used))
    return sorted(await session.scalars(query))


async def list_possible_series(
    session: Session, terms: Sequence[Term], scope: ListScope
) -> set[str]:
    """Returns names of all series of runs that may fit terms: of the setups that fit them."""
    of_setup = (build_setup_condition(term, scope) for term in terms if is_about_setup(term))
    query = select(SeriesNameRow.name).where(_is_used(scope.project_ids, *of_setup))
    return set(await session.scalars(query))


def _is_used(project_ids: Collection[str], *of_setup: ColumnElement[bool]) -> ColumnElement[bool]:
    setups = select(SetupRow.id).where(SetupRow.project_id.in_(project_ids), *of_setup)
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
