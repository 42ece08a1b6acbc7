"""The audit log."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from app.db.engine import Session
from app.db.models.projects import Audit


def append(session: Session, row: dict[str, Any]) -> None:
    """Appends a row (columns of `Audit`) in the transaction of the change."""
    session.add(Audit(**row))


async def of_object(session: Session, project_id: str, object_type: str, object_id: str) -> Sequence[Audit]:
    """Returns what happened to one object, oldest first."""
    query = select(Audit).where(Audit.project_id == project_id, Audit.object_type == object_type, Audit.object_id == object_id)
    return (await session.scalars(query.order_by(Audit.id))).all()
