"""Rights of a caller that are read again in the transaction of a change.

Between the authentication of a request and its transaction, an administrator can be demoted and a
member removed. Whoever gives rights to others must still have them when the change is committed.
"""

from dataclasses import replace

from app.db.engine import Session
from app.db.repositories import present_rights as rows
from app.domain.errors import NotFoundError, UnauthenticatedError
from app.domain.principal import Principal
from palestra.contract.permissions import Permission


def build_user_gone() -> UnauthenticatedError:
    """Returns the refusal of a user who was disabled or deleted after the authentication."""
    return UnauthenticatedError(
        "unauthenticated", "This user was disabled or deleted. Ask an administrator."
    )


async def hold(session: Session, principal: Principal, project_id: str | None = None) -> Principal:
    """Returns the caller with its present rights, which stay unchanged until the transaction ends.

    Args:
        session: A writing session. If a project's row is locked as well, lock it first.
        principal: A user, as the request was authenticated.
        project_id: The project whose role is read again; the other roles are left out.

    Raises:
        UnauthenticatedError: If the user was disabled or deleted.
        NotFoundError: If the project does not exist for the caller any more.
    """
    held = await rows.hold(session, principal.user_id, project_id)
    if held is None:
        raise build_user_gone()
    present = replace(principal, is_admin=principal.is_admin and held.is_admin)
    if project_id is None:
        return present
    memberships = tuple(
        replace(membership, role=held.role)
        for membership in principal.memberships
        if membership.project_id == project_id and held.role is not None
    )
    present = replace(present, memberships=memberships)
    if not memberships and not present.permits(Permission.SERVER_PROJECTS):
        raise NotFoundError("project")
    return present
