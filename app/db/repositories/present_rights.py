"""Rows from which a caller's rights follow, locked until the transaction ends."""

from dataclasses import dataclass

from sqlalchemy import select

from app.db.engine import Session
from app.db.models.projects import MembershipRow, UserRow
from palestra.contract.permissions import Role


@dataclass(frozen=True, slots=True)
class HeldRights:
    """The rights that a user has now: role in a project, and administration of the server."""

    is_admin: bool
    role: Role | None
    """Role in the project that was asked for."""


async def hold(session: Session, user_id: str, project_id: str | None) -> HeldRights | None:
    """Returns a user's rights, locked against changes until the transaction ends.

    `None` if the user was disabled or deleted.
    """
    user = select(UserRow.is_admin).where(UserRow.id == user_id, UserRow.disabled_at.is_(None))
    is_admin = await session.scalar(user.with_for_update(read=True))
    if is_admin is None:
        return None
    membership = select(MembershipRow.role).where(
        MembershipRow.user_id == user_id, MembershipRow.project_id == project_id
    )
    role = await session.scalar(membership.with_for_update(read=True))
    return HeldRights(is_admin, role)
