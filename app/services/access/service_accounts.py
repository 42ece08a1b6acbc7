"""Service accounts: users of one project for programs, such as those of continuous integration."""

from datetime import datetime

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import UserRow
from app.db.repositories import access as rows
from app.db.repositories import memberships
from app.db.repositories import tokens as token_rows
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services.access import present_rights, rights, tokens
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from palestra.contract.access import TokenRequest, TokenView
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Permission, Role
from palestra.contract.service_accounts import ServiceAccountRequest, ServiceAccountView
from palestra.contract.views import Page

_SCOPES = frozenset({Scope.READ, Scope.SUBMIT})


async def list_accounts(session: Session, principal: Principal) -> Page[ServiceAccountView]:
    """Returns the service accounts of the caller's one project by name."""
    project_id = _project(principal)
    found = await token_rows.list_service_accounts(session, project_id)
    return Page(items=[_view(*one) for one in found], next_cursor=None)


async def create(
    session: Session, principal: Principal, request: ServiceAccountRequest
) -> ServiceAccountView:
    """Creates a service account in the caller's one project.

    Raises:
        ForbiddenError: `missing_permission`.
        InvalidError: `role_not_allowed` for a maintainer.
        ConflictError: `name_taken`.
    """
    project_id = await _hold_project(session, principal)
    if request.role is Role.MAINTAINER:
        raise InvalidError(
            "role_not_allowed",
            "a service account is a viewer or a member, so that no program manages the project",
            pointer="/role",
        )
    user_id = new_id("usr")
    values = {
        "id": user_id,
        "name": request.name,
        "service_project_id": project_id,
        "made_by": principal.user_id,
    }
    if not await token_rows.insert_user(session, values):
        raise ConflictError(
            "name_taken",
            "Another user or service account has this name, maybe a deleted one. Choose another.",
            pointer="/name",
        )
    await memberships.insert(session, project_id, user_id, request.role)
    _record(session, principal, "service_account.create", user_id, project_id, request.name)
    announce(session, ACCESS)
    (made,) = await token_rows.list_service_accounts(session, project_id, request.name)
    return _view(*made)


async def delete(session: Session, principal: Principal, name: str) -> None:
    """Disables a service account for ever and revokes its tokens.

    Its submissions keep its name, which no other user can get.

    Raises:
        NotFoundError: If the project has no such service account.
    """
    project_id = _project(principal)
    user = await _find(session, project_id, name)
    await token_rows.retire(session, user.id)
    _record(session, principal, "service_account.delete", user.id, project_id, name)
    announce(session, ACCESS)


async def create_token(
    session: Session,
    principal: Principal,
    name: str,
    request: TokenRequest,
    *,
    may_never_end: bool = False,
) -> TokenView:
    """Creates a token of a service account, bound to its project; returns it with its secret.

    Raises:
        NotFoundError: If the project has no such service account.
        ForbiddenError: `missing_scope` if the caller lacks a scope, or if it is neither `read` nor
            `submit`.
        InvalidError: `end_needed`, `enrolment_token_needed` or `outlives_parent`.
    """
    project_id = await _hold_project(session, principal)
    tokens.check_request(request, may_never_end=may_never_end)
    user = await _find(session, project_id, name)
    if other := set(request.scopes) - (_SCOPES & tokens.list_grantable_scopes(principal)):
        raise ForbiddenError(
            "missing_scope",
            f"You cannot give the scope {min(other)} to a service account: it takes read and "
            "submit, if you have them.",
        )
    return await tokens.create_for(session, principal, request, user.id, project_id)


def _project(principal: Principal) -> str:
    project_id = rights.find_only_project(principal)
    rights.require(principal, Permission.PROJECT_CREDENTIALS, project_id)
    return project_id


async def _hold_project(session: Session, principal: Principal) -> str:
    """Returns the caller's one project, whose credentials it may manage until the commit."""
    return _project(await present_rights.hold(session, principal, _project(principal)))


async def _find(session: Session, project_id: str, name: str) -> UserRow:
    user = await rows.find_user_by_name(session, name)
    if user is None or user.service_project_id != project_id or user.disabled_at is not None:
        raise NotFoundError("service account")
    return user


def _record(
    session: Session, principal: Principal, action: str, user_id: str, project_id: str, name: str
) -> None:
    audit_log.record(
        session,
        action,
        user_id,
        project_id=project_id,
        actor=describe_actor(principal),
        data={"name": name},
    )


def _view(
    user: UserRow, role: Role, count: int, last_used_at: datetime | None
) -> ServiceAccountView:
    return ServiceAccountView(
        user_id=user.id,
        name=user.name,
        role=role,
        created_at=user.created_at,
        tokens=count,
        last_used_at=last_used_at,
    )
