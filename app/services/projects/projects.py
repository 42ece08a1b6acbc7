"""Projects: created, listed, changed, archived."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import ProjectRow
from app.db.repositories import memberships
from app.db.repositories import projects as rows
from app.domain.errors import ConflictError, ForbiddenError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Membership, Principal
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.access.members import free_slug
from app.services.audit import audit_log
from app.services.views import pages
from app.services.views.columns import build_view
from app.services.workers import pools
from palestra.contract.names import new_id
from palestra.contract.permissions import Permission, Role
from palestra.contract.projects import ProjectChange, ProjectRequest, ProjectView
from palestra.contract.views import Page

_NAME_TAKEN: Final = (
    "Another project has this name, maybe a deleted one that can still be restored. Choose "
    "another name."
)


async def create(session: Session, principal: Principal, request: ProjectRequest) -> ProjectView:
    """Creates a project, of which the caller becomes a maintainer.

    Raises:
        ConflictError: `name_taken` or `slug_taken`.
        InvalidError: `unknown_pool`.
    """
    slug = request.slug or await free_slug(session, request.name)
    project_id, role = new_id("prj"), Role.MAINTAINER
    values = {
        "id": project_id,
        "slug": slug,
        "name": request.name,
        "description": request.description,
        "storage_limit": request.storage_limit,
    }
    if not await rows.insert(session, values):
        raise await _taken(session, slug)
    await memberships.insert(session, project_id, principal.user_id, role)
    _record(session, principal, "project.create", project_id, slug=slug, name=request.name)
    audit_log.record(
        session, "membership.create", principal.user_id, project_id=project_id,
        actor=describe_actor(principal),
        data={"user": principal.user, "role": role, "project": slug},
    )  # fmt: skip
    await pools.admit_new_project(session, principal, project_id, request.pools)
    announce(session, ACCESS)
    own = Membership(project_id=project_id, slug=slug, name=request.name, role=role)
    return await get(session, replace(principal, memberships=(*principal.memberships, own)), slug)


async def _taken(session: Session, slug: str) -> ConflictError:
    if await rows.is_slug_taken(session, slug):
        return ConflictError(
            "slug_taken",
            "Another project has this slug, maybe a deleted one that can still be restored. "
            "Choose another slug.",
            pointer="/slug",
        )
    return ConflictError("name_taken", _NAME_TAKEN, pointer="/name")


async def list_projects(
    session: Session, principal: Principal, request: PageRequest
) -> Page[ProjectView]:
    """Returns the caller's projects; all projects for an administrator of the server."""
    keys = build_keyset(request, rows.COLUMNS)
    is_manager = principal.permits(Permission.SERVER_PROJECTS)
    found = await rows.list_page(session, None if is_manager else principal.project_ids, keys)
    return await pages.cut(found, request, keys, partial(_views, session, principal))


async def get(session: Session, principal: Principal, slug: str) -> ProjectView:
    """Returns a project of the caller, or any for an administrator of the server.

    Raises:
        NotFoundError: If it does not exist for the caller.
    """
    (view,) = await _views(session, principal, [await find(session, principal, slug)])
    return view


async def change(
    session: Session, principal: Principal, slug: str, request: ProjectChange
) -> ProjectView:
    """Renames or describes a project, or sets its storage limit.

    Raises:
        NotFoundError: If it does not exist for the caller.
        ForbiddenError: If the caller may not change it; `missing_permission` for the storage limit
            if the caller is no administrator of the server.
        ConflictError: `name_taken`.
    """
    project = await find(session, principal, slug, Permission.PROJECT_SETTINGS)
    wanted: dict[str, Any] = {
        name: getattr(request, name)
        for name in request.model_fields_set
        if name == "storage_limit" or getattr(request, name) is not None
    }
    if "storage_limit" in wanted and not principal.permits(Permission.SERVER_PROJECTS):
        raise ForbiddenError(
            "missing_permission",
            "storage_limit needs the permission server.projects. Ask an administrator of the "
            "server to change it.",
        )
    changed = {name: new for name, new in wanted.items() if new != getattr(project, name)}
    if changed:
        if not await rows.change(session, project.id, changed):
            raise ConflictError("name_taken", _NAME_TAKEN, pointer="/name")
        _record(session, principal, "project.update", project.id, **changed)
        announce(session, ACCESS)
    return await get(session, principal, slug)


async def archive(
    session: Session, principal: Principal, slug: str, *, archived: bool = True
) -> ProjectView:
    """Archives a project, to which nothing can be submitted then, or restores it.

    Its running jobs go on. Doing it twice changes nothing.

    Raises:
        NotFoundError: If it does not exist for the caller.
        ForbiddenError: If the caller may not change it.
    """
    project = await find(session, principal, slug, Permission.PROJECT_SETTINGS)
    if await rows.set_archived(session, project.id, archived=archived):
        action = "project.archive" if archived else "project.restore"
        _record(session, principal, action, project.id)
        announce(session, ACCESS)
    return await get(session, principal, slug)


async def find(
    session: Session, principal: Principal, slug: str, permission: Permission | None = None
) -> ProjectRow:
    """Returns a project if the caller has a permission in it or manages all projects.

    An administrator of the server manages projects without being a member, and cannot read
    their content.

    Args:
        session: A session.
        principal: The caller.
        slug: Slug of the project.
        permission: A permission of the project; `None` needs a membership alone.

    Raises:
        NotFoundError: If the project does not exist for the caller.
        ForbiddenError: `missing_permission`.
    """
    is_manager = principal.permits(Permission.SERVER_PROJECTS)
    is_member = any(one.slug == slug for one in principal.memberships)
    project = await rows.find_by_slug(session, slug) if is_member or is_manager else None
    if project is None:
        raise NotFoundError("project")
    if permission is not None and not is_manager:
        rights.require(principal, permission, project.id)
    return project


async def _views(
    session: Session, principal: Principal, projects: Sequence[ProjectRow]
) -> list[ProjectView]:
    counts = await rows.load_counts(session, [project.id for project in projects])
    roles = {one.project_id: one.role for one in principal.memberships}
    return [
        build_view(
            ProjectView,
            project,
            role=roles.get(project.id),
            permissions=principal.permissions_in(project.id),
            members=counts[project.id].members,
            experiments=counts[project.id].experiments,
            runs=counts[project.id].runs,
            jobs=counts[project.id].jobs,
        )
        for project in projects
    ]


def _record(
    session: Session, principal: Principal, action: str, project_id: str, **data: Any
) -> None:
    audit_log.record(
        session,
        action,
        project_id,
        project_id=project_id,
        actor=describe_actor(principal),
        data=data,
    )
