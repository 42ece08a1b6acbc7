"""Members of a project: listed, added, given another role, removed."""

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories import access as access_rows
from app.db.repositories import memberships
from app.db.repositories import projects as rows
from app.domain.errors import ConflictError
from app.domain.principal import Principal
from app.services.access import present_rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.projects.projects import find
from palestra.contract.permissions import Permission, Role
from palestra.contract.projects import MemberView
from palestra.contract.views import Page


async def list_members(session: Session, principal: Principal, slug: str) -> Page[MemberView]:
    """Returns all members of a project by login name.

    Raises:
        NotFoundError: If the project does not exist for the caller.
    """
    project = await find(session, principal, slug)
    found = await rows.list_members(session, project.id)
    return Page(items=[_view(*one) for one in found], next_cursor=None)


async def set_role(
    session: Session, principal: Principal, slug: str, name: str, role: Role
) -> MemberView:
    """Adds a user to a project, or gives a member another role.

    Args:
        session: A writing session.
        principal: The caller.
        slug: Slug of the project.
        name: Login name of the user.
        role: The role.

    Raises:
        NotFoundError: If the project does not exist for the caller.
        ForbiddenError: If the caller may not manage its members.
        ConflictError: `no_such_user`, `user_disabled`, `service_account`, or `last_maintainer`.
    """
    principal, project, user = await _hold(session, principal, slug, name)
    if user.service_project_id not in {None, project.id} or (
        user.service_project_id is not None and role is Role.MAINTAINER
    ):
        raise ConflictError(
            "service_account",
            "A service account is a viewer or member of the project that made it, and of no other.",
        )
    own = await memberships.find(session, project.id, user.id)
    if own is None:
        if user.disabled_at is not None:
            raise ConflictError(
                "user_disabled",
                "This user is disabled. An administrator of the server can enable the user first.",
            )
        await memberships.insert(session, project.id, user.id, role)
        _record(session, principal, "membership.create", project, user, role)
    elif own.role != role:
        await _check_maintained(session, principal, project, own)
        memberships.set_role(own, role)
        _record(session, principal, "membership.update", project, user, role)
    announce(session, ACCESS)
    ((membership, member),) = await rows.list_members(session, project.id, user.id)
    return _view(membership, member)


async def remove(session: Session, principal: Principal, slug: str, name: str) -> None:
    """Removes a member; the member's experiments stay and their jobs continue.

    Raises:
        NotFoundError: If the project does not exist for the caller.
        ForbiddenError: If the caller may not manage its members.
        ConflictError: `no_such_user`, `not_a_member`, `service_account`, or `last_maintainer`.
    """
    principal, project, user = await _hold(session, principal, slug, name)
    own = await memberships.find(session, project.id, user.id)
    if own is None:
        raise ConflictError(
            "not_a_member",
            "This user is no member of the project. GET the project's members to see who is.",
        )
    if user.service_project_id is not None:
        raise ConflictError(
            "service_account", "A service account stays a member: delete the account instead."
        )
    await _check_maintained(session, principal, project, own)
    await memberships.delete(session, own)
    _record(session, principal, "membership.delete", project, user, own.role)
    announce(session, ACCESS)


async def _hold(
    session: Session, principal: Principal, slug: str, name: str
) -> tuple[Principal, ProjectRow, UserRow]:
    """Returns the caller with its present rights, the locked project and the user."""
    project = await find(session, principal, slug, Permission.PROJECT_MEMBERS)
    await rows.lock(session, project.id)
    principal = await present_rights.hold(session, principal, project.id)
    await find(session, principal, slug, Permission.PROJECT_MEMBERS)
    user = await access_rows.find_user_by_name(session, name)
    if user is None:
        raise ConflictError(
            "no_such_user",
            "Nobody has this login name. Check the spelling, or let an administrator of the "
            "server invite the person first.",
        )
    return principal, project, user


async def _check_maintained(
    session: Session, principal: Principal, project: ProjectRow, changed: MembershipRow
) -> None:
    """Refuses to take the role of a project's last maintainer.

    An administrator of the server may take it, and can appoint another maintainer.
    """
    if changed.role is not Role.MAINTAINER or principal.permits(Permission.SERVER_PROJECTS):
        return
    if not await rows.has_other_maintainer(session, project.id, changed.user_id):
        raise ConflictError(
            "last_maintainer",
            "This is the project's last maintainer. Make another member a maintainer first, or "
            "ask an administrator of the server.",
        )


def _record(
    session: Session,
    principal: Principal,
    action: str,
    project: ProjectRow,
    user: UserRow,
    role: Role,
) -> None:
    audit_log.record(
        session,
        action,
        user.id,
        project_id=project.id,
        actor=describe_actor(principal),
        data={"user": user.name, "role": role, "project": project.slug},
    )


def _view(membership: MembershipRow, user: UserRow) -> MemberView:
    return MemberView(
        user_id=user.id,
        user=user.name,
        display_name=user.display_name,
        role=membership.role,
        since=membership.created_at,
        disabled=user.disabled_at is not None,
        service_account=user.service_project_id is not None,
    )
