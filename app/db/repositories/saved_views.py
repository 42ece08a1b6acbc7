"""Rows of saved views."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from app.db import faults
from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.saved_views import SavedViewRow
from app.db.repositories.keyset_pages import Columns, select_page
from app.domain.paging import Keyset
from palestra.contract.saved_views import ViewVisibility

COLUMNS: Final[Columns] = {
    "name": SavedViewRow.name,
    "created_at": SavedViewRow.created_at,
    "updated_at": SavedViewRow.updated_at,
}


async def list_page(
    session: Session, project_ids: Collection[str], user_id: str, keys: Keyset
) -> Sequence[SavedViewRow]:
    """Returns a page of the views that a user sees in some projects, and one row more."""
    query = select(SavedViewRow).where(*_is_visible(project_ids, user_id))
    return (await session.scalars(select_page(query, keys, COLUMNS, SavedViewRow.id))).all()


async def find(
    session: Session, project_ids: Collection[str], user_id: str, view_id: str
) -> SavedViewRow | None:
    """Returns a view that a user sees in some projects."""
    query = select(SavedViewRow).where(
        SavedViewRow.id == view_id, *_is_visible(project_ids, user_id)
    )
    return (await session.scalars(query.execution_options(populate_existing=True))).one_or_none()


def _is_visible(project_ids: Collection[str], user_id: str) -> list[ColumnElement[bool]]:
    mine_or_shared = or_(
        SavedViewRow.owner_id == user_id, SavedViewRow.visibility == ViewVisibility.PROJECT
    )
    return [SavedViewRow.project_id.in_(project_ids), mine_or_shared]


async def count_owned(session: Session, project_id: str, user_id: str) -> int:
    """Returns the number of a user's views in a project."""
    query = select(func.count()).where(
        SavedViewRow.project_id == project_id, SavedViewRow.owner_id == user_id
    )
    return int(await session.scalar(query) or 0)


async def insert(session: Session, values: Mapping[str, Any]) -> bool:
    """Adds a view; returns false if its owner has one of that name in the project."""
    try:
        async with session.begin_nested():
            session.add(SavedViewRow(**values))
            await session.flush()
    except IntegrityError as error:
        if faults.refers_to_missing_row(error):
            raise
        return False
    return True


async def change(session: Session, view_id: str, values: Mapping[str, Any]) -> bool:
    """Sets columns of a view; returns false if its owner has another one of that name."""
    try:
        async with session.begin_nested():
            await session.execute(
                update(SavedViewRow)
                .where(SavedViewRow.id == view_id)
                .values(**values, updated_at=db_now())
                .execution_options(synchronize_session=False)
            )
    except IntegrityError:
        return False
    return True


async def remove(session: Session, view_id: str) -> None:
    """Deletes a view."""
    await session.execute(
        delete(SavedViewRow)
        .where(SavedViewRow.id == view_id)
        .execution_options(synchronize_session=False)
    )
