"""Describes a one-time link, and the faults of a new name and password."""

from app.db.engine import Database, Session
from app.db.models.projects import UserRow
from app.db.repositories import access as rows
from app.domain.errors import ConflictError, DomainError, InvalidError
from app.domain.secrets import hash_secret, is_well_formed
from app.services.access import invitations, logins, passwords
from app.services.access.login_names import build_name_taken, normalise_login_name
from palestra.contract.access import LinkPreview, SetupRequest
from palestra.contract.views import FieldProblem


async def preview(database: Database, request: SetupRequest) -> LinkPreview:
    """Returns the purpose of a code, and why name and password of the request would be refused.

    Nothing is used up or changed. No session is open while the password is checked.

    Raises:
        LoginRefusedError: If the code is unknown, used, expired or revoked.
    """
    code_hash = hash_secret(request.code) if is_well_formed(request.code) else ""
    async with database.read() as session:
        user = await rows.find_user_by_link(session, code_hash)
        found, words = (
            await _preview_invitation(session, code_hash)
            if user is None
            else (_login(user), [user.name])
        )
        faults = await _name_faults(session, request.user or found.user, user)
    faults += await _password_faults(request, words)
    problems = [
        FieldProblem(pointer=fault.pointer or "", code=fault.code, message=fault.detail)
        for fault in faults
    ]
    return found.model_copy(update={"problems": problems})


def _login(user: UserRow) -> LinkPreview:
    return LinkPreview(
        kind="login",
        user=user.name,
        display_name=user.display_name,
        is_admin=user.is_admin,
        projects=[],
        invited_by=None,
        problems=[],
    )


async def _preview_invitation(session: Session, code_hash: str) -> tuple[LinkPreview, list[str]]:
    """Returns an open invitation, and words that make a password easy to guess."""
    row = await invitations.find_open_invitation(session, code_hash)
    if row is None:
        raise logins.build_link_used()
    (view,) = await invitations.build_views(session, [row])
    found = LinkPreview(
        kind="invitation",
        user=view.name,
        display_name=view.display_name,
        is_admin=view.is_admin,
        projects=view.projects,
        invited_by=view.created_by,
        problems=[],
    )
    return found, [view.name or "", view.display_name, view.email or ""]


async def _name_faults(
    session: Session, typed: str | None, user: UserRow | None
) -> list[DomainError]:
    if typed is None:
        return []
    try:
        name, _ = normalise_login_name(typed, pointer="/user")
    except InvalidError as fault:
        return [fault]
    is_own = user is not None and user.name == name
    if not is_own and await rows.find_user_by_name(session, name) is not None:
        taken: ConflictError = build_name_taken("/user")
        return [taken]
    return []


async def _password_faults(request: SetupRequest, words: list[str]) -> list[DomainError]:
    if request.password is None:
        return []
    words = [*words, request.user or "", request.display_name or ""]
    try:
        await passwords.check(request.password, *filter(None, words))
    except InvalidError as fault:
        return [fault]
    return []
