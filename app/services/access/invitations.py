"""Invitations: one-time links with which people become users."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from app.db.engine import Database, Session
from app.db.models.invitations import InvitationRow
from app.db.models.projects import ProjectRow
from app.db.repositories import access as access_rows
from app.db.repositories import invitations as rows
from app.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    LoginRefusedError,
    NotFoundError,
)
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.domain.secrets import generate_secret, hash_secret
from app.services.access import passwords, present_rights
from app.services.access.audit_actor import describe_actor
from app.services.access.login_names import build_name_taken, normalise_login_name
from app.services.access.sessions import Login, open_login
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from app.services.views import pages
from app.services.views.columns import build_view
from palestra.contract.access import SetupRequest
from palestra.contract.names import new_id
from palestra.contract.people import (
    InvitationRequest,
    InvitationState,
    InvitationsView,
    InvitationView,
    InviteRequest,
    UserProjectView,
)
from palestra.contract.permissions import Permission, Role
from palestra.contract.views import Page

_ANOTHER: Final = "Ask an administrator for another invitation."


async def invite(
    session: Session, principal: Principal, request: InviteRequest, server_url: str
) -> InvitationsView:
    """Makes invitations and returns them with their links, which are not stored.

    Args:
        session: A writing session.
        principal: A server administrator.
        request: The persons to invite, with their roles.
        server_url: Address of the server in the links.

    Raises:
        InvalidError: `no_such_project`.
        ConflictError: `name_taken` by a user or by another invitation of the request;
            `project_archived`.
    """
    require_user_management(await present_rights.hold(session, principal))
    projects = {project.slug: project for project in await rows.list_live_projects(session)}
    _check_names_differ(request)
    made: list[tuple[InvitationRow, str]] = []
    for index, wanted in enumerate(request.invitations):
        pointer = f"/invitations/{index}"
        roles = _read_roles(wanted, projects, pointer)
        if wanted.name is not None and await access_rows.find_user_by_name(session, wanted.name):
            raise build_name_taken(f"{pointer}/name")
        code = generate_secret("pll")
        row = InvitationRow(
            id=new_id("inv"),
            code_hash=hash_secret(code),
            name=wanted.name,
            display_name=wanted.display_name or "",
            email=wanted.email,
            is_admin=wanted.is_admin,
            memberships=[{"project_id": key, "role": role} for key, role in roles.items()],
            created_by=principal.user_id,
        )
        await rows.insert(session, row, request.expires_in_hours * 3_600.0)
        _record(session, "invitation.create", principal, row)
        # The code is in the fragment, which browsers send to no server and write into no log.
        made.append((row, f"{server_url}/login#code={code}"))
    shown = await build_views(session, [row for row, _ in made])
    return InvitationsView(
        items=[
            view.model_copy(update={"url": url}) for view, (_, url) in zip(shown, made, strict=True)
        ]
    )


def _check_names_differ(request: InviteRequest) -> None:
    seen: set[str] = set()
    for index, wanted in enumerate(request.invitations):
        if wanted.name is not None and wanted.name in seen:
            raise build_name_taken(f"/invitations/{index}/name")
        seen |= {wanted.name} if wanted.name is not None else set()


def _read_roles(
    wanted: InvitationRequest, projects: dict[str, ProjectRow], pointer: str
) -> dict[str, str]:
    """Returns the roles of an invitation by the project's ID."""
    roles = {}
    for index, one in enumerate(wanted.projects):
        place = f"{pointer}/projects/{index}/project"
        project = projects.get(one.project)
        if project is None:
            raise InvalidError(
                "no_such_project",
                "There is no project of this name. Create it first.",
                pointer=place,
            )
        if project.archived_at is not None:
            raise ConflictError(
                "project_archived",
                "This project is archived. Restore it first, or leave it out.",
                pointer=place,
            )
        roles[project.id] = one.role.value
    return roles


async def list_invitations(
    session: Session, principal: Principal, page: PageRequest
) -> Page[InvitationView]:
    """Returns all invitations without their links."""
    require_user_management(principal)
    keys = build_keyset(page, rows.COLUMNS)
    return await pages.cut(
        await rows.list_page(session, keys), page, keys, partial(build_views, session)
    )


async def revoke(session: Session, principal: Principal, invitation_id: str) -> None:
    """Revokes an invitation. Revoking it twice changes nothing.

    Raises:
        NotFoundError: If there is no such invitation.
        ConflictError: `invitation_used` if somebody became a user with it.
    """
    require_user_management(principal)
    if await rows.revoke(session, invitation_id):
        row = await rows.find(session, invitation_id)
        assert row is not None
        return _record(session, "invitation.revoke", principal, row)
    row = await rows.find(session, invitation_id)
    if row is None:
        raise NotFoundError("invitation")
    if row.redeemed_at is not None:
        raise ConflictError(
            "invitation_used",
            "This invitation was used: the person is a user now. Disable or delete the user "
            "instead.",
        )
    return None


async def redeem(database: Database, request: SetupRequest, origin: RequestOrigin) -> Login | None:
    """Makes the user of an invitation, and returns the user's first browser login.

    Returns `None` if the code is of no invitation.

    Raises:
        LoginRefusedError: `invitation_used`, `invitation_expired` or `invitation_revoked`.
        InvalidError: `name_needed`, `invalid_name` or `password_needed`, or if the password is too
            easy to guess.
        ConflictError: `name_taken`.
    """
    code_hash = hash_secret(request.code)
    async with database.read() as session:
        invitation = await find_open_invitation(session, code_hash)
    if invitation is None:
        return None
    name, display_name = _choose_names(invitation, request)
    if request.password is None:
        raise InvalidError(
            "password_needed",
            "Choose a password: later logins need it, since this link is good for one.",
            pointer="/password",
        )
    words = (request.user or "", name, display_name, invitation.email or "")
    password_hash = await passwords.hash_new(request.password, *filter(None, words))
    async with database.write() as session:
        audit_log.set_origin(session, origin)
        user_id = new_id("usr")
        if not await rows.redeem(session, invitation.id, user_id):
            await find_open_invitation(session, code_hash)
            raise _ended("used")
        user = {
            "id": user_id,
            "name": name,
            "display_name": display_name,
            "email": invitation.email,
            "is_admin": invitation.is_admin,
            "password_hash": password_hash,
        }
        if not await rows.insert_user(session, user):
            raise build_name_taken("/user")
        roles = {str(one["project_id"]): Role(one["role"]) for one in invitation.memberships}
        joined = await rows.insert_memberships(session, user_id, roles)
        _record_user(session, invitation, user_id, {key: roles[key] for key in joined})
        return await open_login(session, user_id, "invitation", origin)


async def find_open_invitation(session: Session, code_hash: str) -> InvitationRow | None:
    """Returns the invitation of a code.

    Raises:
        LoginRefusedError: If it is not open any more.
    """
    found = await rows.find_by_code(session, code_hash)
    if found is None:
        return None
    row, is_over = found
    state = _state(row, is_over=is_over)
    if state != "open":
        raise _ended("used" if state == "redeemed" else state)
    return row


def _ended(how: str) -> LoginRefusedError:
    sentences = {
        "used": "This invitation was used. If it was you, log in with your name and password. "
        "If not, ask an administrator for another one.",
        "expired": f"This invitation has expired. {_ANOTHER}",
        "revoked": f"This invitation was revoked. {_ANOTHER}",
    }
    return LoginRefusedError(f"invitation_{how}", sentences[how])


def _choose_names(invitation: InvitationRow, request: SetupRequest) -> tuple[str, str]:
    """Returns login name and display name of the new user."""
    typed = request.user or invitation.name
    if typed is None:
        raise InvalidError(
            "name_needed",
            "Choose a login name of ASCII letters, digits and hyphens, for example `grace-h`.",
            pointer="/user",
        )
    name, kept = normalise_login_name(typed, pointer="/user")
    return name, request.display_name or invitation.display_name or kept


def _record_user(
    session: Session, invitation: InvitationRow, user_id: str, roles: Mapping[str, Role]
) -> None:
    whose = f"user:{user_id}"
    audit_log.record(
        session, "invitation.redeem", invitation.id, project_id=None, actor=whose,
        data={"user_id": user_id},
    )  # fmt: skip
    audit_log.record(
        session, "user.create", user_id, project_id=None, actor=whose,
        data={"invitation_id": invitation.id, "is_admin": invitation.is_admin},
    )  # fmt: skip
    for project_id, role in roles.items():
        audit_log.record(
            session, "membership.create", user_id, project_id=project_id, actor=whose,
            data={"role": role, "invitation_id": invitation.id},
        )  # fmt: skip


def _record(session: Session, action: str, principal: Principal, row: InvitationRow) -> None:
    data = {
        "name": row.name,
        "email": row.email,
        "is_admin": row.is_admin,
        "memberships": row.memberships,
    }
    audit_log.record(
        session, action, row.id, project_id=None, actor=describe_actor(principal), data=data
    )


def require_user_management(principal: Principal) -> None:
    """Refuses callers who are not administrators of the server.

    Raises:
        ForbiddenError: `missing_permission`.
    """
    if not principal.permits(Permission.SERVER_USERS):
        raise ForbiddenError(
            "missing_permission",
            "Only an administrator of the server may manage users. Ask one.",
        )


async def build_views(session: Session, found: Sequence[InvitationRow]) -> list[InvitationView]:
    """Returns invitations as administrators see them, without their links."""
    people = {row.created_by for row in found} | {row.redeemed_by or "" for row in found}
    names = await access_rows.load_user_names(session, people)
    projects = {project.id: project for project in await rows.list_live_projects(session)}
    over = await rows.filter_expired(session, [row.id for row in found])
    return [
        build_view(
            InvitationView,
            row,
            projects=_projects(row, projects),
            state=_state(row, is_over=row.id in over),
            created_by=names.get(row.created_by),
            redeemed_by=names.get(row.redeemed_by or ""),
        )
        for row in found
    ]


def _projects(row: InvitationRow, projects: dict[str, ProjectRow]) -> list[UserProjectView]:
    return [
        UserProjectView(
            project_id=project.id, slug=project.slug, name=project.name, role=Role(one["role"])
        )
        for one in row.memberships
        if (project := projects.get(one["project_id"])) is not None
    ]


def _state(row: InvitationRow, *, is_over: bool) -> InvitationState:
    if row.redeemed_at is not None:
        return "redeemed"
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if is_over else "open"
