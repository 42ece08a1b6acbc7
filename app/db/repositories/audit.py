"""The audit log."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from app.db.engine import Session
from app.db.models.projects import AuditRow


def append(session: Session, row: dict[str, Any]) -> None:
    """Appends a row (columns of `AuditRow`) in the transaction of the change."""
    session.add(AuditRow(**row))


async def of_object(
    session: Session, project_id: str, object_type: str, object_id: str
) -> Sequence[AuditRow]:
    """Returns the audit rows of one object, oldest first."""
    query = select(AuditRow).where(
        AuditRow.project_id == project_id,
        AuditRow.object_type == object_type,
        AuditRow.object_id == object_id,
    )
    return (await session.scalars(query.order_by(AuditRow.id))).all()
