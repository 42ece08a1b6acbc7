"""Members of projects: the first admin, and who may log in by name."""

from typing import Final

from app.db.engine import Session
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories import access as rows
from app.domain.errors import (
    ConflictError,
)
from app.services.audit import audit_log
from palestra.contract.names import new_id

DEFAULT_PROJECT: Final = "default"


DEFAULT_ADMIN: Final = "admin"


async def bootstrap(
    session: Session, project: str | None = None, admin: str | None = None
) -> MembershipRow:
    """Returns the membership of a project's admin; creates project and admin where missing.

    A new admin has no password.

    Args:
        session: A writing session.
        project: Name of the project; the first one by default.
        admin: Name of its admin; the project's first one by default.

    Raises:
        ConflictError: If the named user is disabled, or is a member of the project without being
            its admin.
    """
    found = await (
        rows.first_project(session) if project is None else rows.project_by_name(session, project)
    )
    if found is None:
        found = ProjectRow(id=new_id("prj"), name=project or DEFAULT_PROJECT)
        session.add(found)
        await session.flush()
    user = await rows.first_admin(session, found.id) if admin is None else None
    if user is None:
        user = await _admin_of(session, found, admin or DEFAULT_ADMIN)
    return MembershipRow(project_id=found.id, user_id=user.id, role="admin")


async def _admin_of(session: Session, project: ProjectRow, name: str) -> UserRow:
    user = await rows.user_by_name(session, name)
    if user is None:
        user = UserRow(id=new_id("usr"), name=name)
        session.add(user)
        await session.flush()
        _record(session, project, "user.create", user)
    if user.disabled_at is not None:
        raise ConflictError("user_disabled", f"The login of {name} is disabled. Name another user.")
    role = await rows.role(session, project.id, user.id)
    if role is None:
        session.add(MembershipRow(project_id=project.id, user_id=user.id, role="admin"))
        await session.flush()
        _record(session, project, "membership.create", user)
    elif role != "admin":
        raise ConflictError(
            "not_admin",
            f"{name} is a {role} of the project {project.name}, not an admin. Name another user.",
        )
    return user


def _record(session: Session, project: ProjectRow, action: str, user: UserRow) -> None:
    audit_log.record(session, action, user.id, project_id=project.id, actor="daemon:bootstrap")


async def member(session: Session, user: str) -> MembershipRow:
    """Returns the oldest membership of a user.

    Raises:
        ConflictError: If no user of that name may log in.
    """
    found = await rows.user_by_name(session, user)
    membership = (
        None
        if found is None or found.disabled_at is not None
        else await rows.membership_of(session, found.id)
    )
    if membership is None:
        raise ConflictError(
            "no_such_user",
            f"Nobody of the name {user} may log in. `bootstrap --user NAME` makes an admin.",
        )
    return membership
