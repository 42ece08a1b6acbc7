"""Rows of memberships in projects."""

from app.db.engine import Session
from app.db.models.projects import MembershipRow
from palestra.contract.permissions import Role


async def insert(session: Session, project_id: str, user_id: str, role: Role) -> None:
    """Makes a user a member of a project."""
    session.add(MembershipRow(project_id=project_id, user_id=user_id, role=role))
    await session.flush()


async def find(session: Session, project_id: str, user_id: str) -> MembershipRow | None:
    """Returns a user's membership in a project."""
    return await session.get(MembershipRow, (project_id, user_id), populate_existing=True)


def set_role(membership: MembershipRow, role: Role) -> None:
    """Sets the role of a member."""
    membership.role = role


async def delete(session: Session, membership: MembershipRow) -> None:
    """Ends a membership."""
    await session.delete(membership)
    await session.flush()
