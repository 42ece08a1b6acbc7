"""The first project with its administrator, and who may log in by name."""

from dataclasses import dataclass
from itertools import count
from typing import Final

from app.db.engine import Session
from app.db.models.projects import ProjectRow, UserRow
from app.db.repositories import access as rows
from app.db.repositories import memberships
from app.db.repositories import projects as project_rows
from app.db.repositories import users as user_rows
from app.domain.errors import ConflictError
from app.services import pools
from app.services.access.login_names import normalise_login_name
from app.services.audit import audit_log
from palestra.contract.names import new_id, slugify
from palestra.contract.permissions import Role

DEFAULT_PROJECT: Final = "default"


DEFAULT_ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """A project and a server administrator who maintains it."""

    project_id: str
    user_id: str


async def ensure_project_and_admin(
    session: Session, project: str | None = None, admin: str | None = None
) -> FirstAdmin:
    """Returns a project and its administrator; creates them where missing.

    A new user has no password.

    Args:
        session: A writing session.
        project: Name of the project; the first one by default.
        admin: Name of the server administrator; the first one by default.

    Raises:
        ConflictError: If the named user is disabled, or exists without being a server
            administrator; `project_deleted` if the named project is deleted.
        InvalidError: If a name has no letter or digit of ASCII.
    """
    found = await (
        rows.find_first_project(session)
        if project is None
        else rows.find_project_by_name(session, project)
    )
    if found is None:
        slug = await free_slug(session, project or DEFAULT_PROJECT)
        # The default name may be that of a deleted project, which can still be restored.
        project_id = new_id("prj")
        await project_rows.insert(
            session, {"id": project_id, "slug": slug, "name": project or slug}
        )
        found = await project_rows.load_by_id(session, project_id)
        await pools.admit_to_default(session, found.id)
    elif found.deleted_at is not None:
        raise ConflictError(
            "project_deleted",
            f"The project {project} is deleted. `palestra projects undelete {found.slug}` "
            "restores it; or name another project.",
        )
    user = await rows.find_first_admin(session) if admin is None else None
    if user is None:
        user = await _admin(session, admin or DEFAULT_ADMIN)
    await _maintain(session, found, user)
    return FirstAdmin(found.id, user.id)


async def free_slug(session: Session, name: str) -> str:
    """Returns a slug of a project's name that no project has."""
    slug = slugify(name, 56, substitute="project")
    taken = await rows.list_slugs_with_prefix(session, slug)
    return next(
        free
        for number in count(1)
        if (free := slug if number == 1 else f"{slug}-{number}") not in taken
    )


async def _admin(session: Session, typed: str) -> UserRow:
    user = await rows.find_user_by_login(session, typed)
    if user is None:
        user = await _new_admin(session, typed)
    if user.disabled_at is not None:
        raise ConflictError(
            "user_disabled",
            f"The login of {typed} is disabled. Name another user, or enable this one by "
            f"`palestra login-link --user {user.name} --enable`.",
        )
    if not user.is_admin:
        raise ConflictError(
            "not_admin",
            f"{typed} is a user without being an administrator of the server. Name another user.",
        )
    return user


async def _new_admin(session: Session, typed: str) -> UserRow:
    name, shown = normalise_login_name(typed)
    values = {"id": new_id("usr"), "name": name, "display_name": shown, "is_admin": True}
    user = await user_rows.insert(session, values)
    audit_log.record(session, "user.create", user.id, project_id=None, actor="daemon:bootstrap")
    return user


async def _maintain(session: Session, project: ProjectRow, user: UserRow) -> None:
    if await rows.find_role(session, project.id, user.id) is None:
        await memberships.insert(session, project.id, user.id, Role.MAINTAINER)
        audit_log.record(
            session, "membership.create", user.id, project_id=project.id, actor="daemon:bootstrap"
        )
