"""Who may come in: tokens, browser logins, setup and login links. Commits nothing; knows no HTTP.

Owns the check of every credential. Passwords are kept as argon2id, all other secrets as SHA-256.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.db.engine import Database, Session
from app.db.models.access import LoginSessionRow, TokenRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories import access as rows
from app.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthenticatedError,
)
from app.domain.paging import PageRequest, keyset
from app.domain.principal import Principal, Via
from app.domain.secrets import csrf_token, derivation_key, hash_secret, is_well_formed, new_secret
from app.services.views import pages
from app.settings import Settings
from palestra.contract.access import (
    LoginOptions,
    LoginRequest,
    SetupRequest,
    TokenRequest,
    TokenView,
)
from palestra.contract.names import Scope, new_id
from palestra.contract.views import Page

_PASSWORDS: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_NOBODYS: Final = "$argon2id$v=19$m=19456,t=2,p=1$JJ9bSw0/d4sI+9TwL5qHlw$M64+260Oq3szi7+0pF5zZMfgCViKiwq/0FSSXB2z6GQ"
"""Verified for unknown users, so that the time tells nothing: as costly as those that `_PASSWORDS`
makes. Its password is lost.
"""
_checker: Final = ThreadPoolExecutor(1, "palestra-passwords")
"""Passwords are checked one by one: each takes 19 MiB and some 30 ms."""
_ROLES: Final = {
    "viewer": frozenset({Scope.READ}),
    "member": frozenset({Scope.READ, Scope.SUBMIT}),
    "admin": frozenset({Scope.READ, Scope.SUBMIT, Scope.ADMIN}),
}
_COMMON: Final = frozenset(
    {
        "password1234",
        "password12345",
        "password123456",
        "123456789012",
        "qwertyuiop12",
        "letmeinletmein",
        "adminadminadmin",
    }
)

_NEW_LINK: Final = (
    "On the server's machine, `palestra login-link` prints a new link that logs you in once: run it where `palestra up` was started, or "
    "name that place with --data-dir."
)

DEFAULT_PROJECT: Final = "default"
DEFAULT_ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True)
class Login:
    """A fresh browser login; the secret goes into its cookie and nowhere else."""

    principal: Principal
    secret: str

    @property
    def csrf(self) -> str:
        """The token that the dashboard sends with every change."""
        return csrf_token(self.secret)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a caller is, and what pages of a browser login must send."""

    principal: Principal
    csrf: str | None


async def bootstrap(
    session: Session, project: str | None = None, admin: str | None = None
) -> MembershipRow:
    """Returns the membership of an admin of a project, making both where they are missing.

    A new admin has no password.

    Args:
        session: A writing session.
        project: Name of the project; the first one by default.
        admin: Name of its admin; the project's first one by default.

    Raises:
        ConflictError: If the named person is disabled, or belongs to the project without being its
            admin.
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
        rows.audit(session, project.id, "daemon:bootstrap", "user.create", user.id)
    if user.disabled_at is not None:
        raise ConflictError("user_disabled", f"The login of {name} is disabled. Name another user.")
    role = await rows.role(session, project.id, user.id)
    if role is None:
        session.add(MembershipRow(project_id=project.id, user_id=user.id, role="admin"))
        await session.flush()
        rows.audit(session, project.id, "daemon:bootstrap", "membership.create", user.id)
    elif role != "admin":
        raise ConflictError(
            "not_admin",
            f"{name} is a {role} of the project {project.name}, not an admin. Name another user.",
        )
    return user


async def member(session: Session, user: str) -> MembershipRow:
    """Returns the oldest membership of a person.

    Raises:
        ConflictError: If nobody of that name may log in.
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


async def principal_of_token(session: Session, secret: str) -> Principal | None:
    """Returns whose bearer token this is: a person's, a worker's or an attempt's.

    `None` for none that is good.
    """
    if not is_well_formed(secret):
        return None
    digest = hash_secret(secret)
    if secret.startswith("pla_"):
        return await _principal_of_attempt(session, digest)
    if secret.startswith("plw_"):
        return await _principal_of_worker(session, secret, digest)
    token = await rows.live_token(session, digest)
    found = None if token is None else await rows.holder(session, token.user_id, token.project_id)
    if token is None or found is None:
        return None
    caller = _principal(found, "token", _granted(token, found.role), token_id=token.id)
    return replace(caller, derivation_key=derivation_key(secret))


def _granted(token: TokenRow, role: str) -> frozenset[Scope]:
    """Returns what a token permits: no more than its person may by now.

    A worker's work does not depend on that.
    """
    return frozenset(Scope(scope) for scope in token.scopes) & (_ROLES[role] | {Scope.WORKER})


async def _principal_of_attempt(session: Session, digest: str) -> Principal | None:
    attempt = await rows.attempt_by_token(session, digest)
    if attempt is None:
        return None
    return Principal(
        project_id=attempt.project_id,
        project="",
        user_id="",
        user=f"attempt {attempt.id}",
        via="attempt",
        attempt_id=attempt.id,
    )


async def _principal_of_worker(session: Session, secret: str, digest: str) -> Principal | None:
    worker = await rows.worker_by_secret(session, digest)
    if worker is None:
        return None
    return Principal(
        project_id=worker.project_id,
        project="",
        user_id=worker.created_by,
        user=f"worker {worker.name}",
        via="worker",
        scopes=frozenset({Scope.WORKER}),
        worker_id=worker.id,
        derivation_key=derivation_key(secret),
    )


async def principal_of_session(
    session: Session, secret: str, settings: Settings
) -> tuple[Principal, str] | None:
    """Returns whose browser login this is, and the token that its pages must send.

    `None` for none that is good.
    """
    if not is_well_formed(secret):
        return None
    login = await rows.live_login(
        session, hash_secret(secret), settings.session_idle_seconds, settings.session_max_seconds
    )
    found = None if login is None else await rows.holder(session, login.user_id, login.project_id)
    if login is None or found is None:
        return None
    return _principal(found, "cookie", _ROLES[found.role], session_id=login.id), csrf_token(secret)


async def login_options(session: Session) -> LoginOptions:
    """Returns the ways in that there are."""
    return LoginOptions(password=await rows.has_password(session))


async def login(database: Database, request: LoginRequest) -> Login:
    """Returns a new browser login for a user name and a password.

    No session is open while the password is checked.

    Raises:
        UnauthenticatedError: In the same words and time for an unknown user and for a wrong
            password.
    """
    async with database.read() as session:
        user = await rows.user_by_name(session, request.user)
    stored = None if user is None else user.password_hash
    good = await asyncio.get_running_loop().run_in_executor(
        _checker, _verify, stored, request.password
    )
    if user is None or not good or user.disabled_at is not None:
        raise UnauthenticatedError(
            "wrong_login",
            f"User name or password is wrong. No password was set, or it is lost? {_NEW_LINK}",
        )
    async with database.write() as session:
        membership = await rows.membership_of(session, user.id)
        if membership is None:
            raise ForbiddenError("no_project", "This user belongs to no project. Ask an admin.")
        return await _open_login(session, user.id, membership.project_id)


async def make_link(session: Session, membership: MembershipRow, seconds: float) -> str:
    """Returns the code of a new one-time setup or login link."""
    code = new_secret("pll")
    await rows.insert_link(session, hash_secret(code), membership, seconds)
    rows.audit(
        session,
        membership.project_id,
        f"user:{membership.user_id}",
        "link.create",
        membership.user_id,
    )
    return code


async def has_logged_in(session: Session, membership: MembershipRow) -> bool:
    """Returns whether the member ever logged a browser in."""
    return await rows.has_logged_in(session, membership.user_id)


async def redeem(session: Session, request: SetupRequest) -> Login:
    """Returns a new browser login for a one-time code, which is then used up.

    Sets name and password where they are given.

    Raises:
        UnauthenticatedError: If the code is unknown, used or expired.
        InvalidError: If the password is too easy to guess.
        ConflictError: If another user has the name.
    """
    used = (
        await rows.use_link(session, hash_secret(request.code))
        if is_well_formed(request.code)
        else None
    )
    found = None if used is None else await rows.holder(session, *used)
    if found is None:
        raise UnauthenticatedError("link_used", f"This link was used or has expired. {_NEW_LINK}")
    if request.user is not None and request.user != found.user.name:
        await _rename(session, found.user, request.user)
    if request.password is not None:
        await _set_password(session, found.user, request.password)
    return await _open_login(session, found.user.id, found.project.id)


async def logout(session: Session, principal: Principal) -> None:
    """Ends the caller's browser login."""
    if principal.session_id is not None:
        await rows.end_login(session, principal.session_id)


async def create_token(session: Session, principal: Principal, request: TokenRequest) -> TokenView:
    """Returns a new token with its secret, which is shown this once.

    What a token makes is its child: it has no scope that the parent lacks, ends no later, and is
    revoked with it. Where no life is asked for, or one that is less than a day too long, it is the
    parent's.

    Raises:
        ForbiddenError: If the caller would hand out more than they have; `worker` takes an admin.
        InvalidError: If it would outlive the token that makes it.
    """
    allowed = principal.scopes | (
        {Scope.READ, Scope.SUBMIT, Scope.WORKER} if Scope.ADMIN in principal.scopes else set()
    )
    if missing := set(request.scopes) - allowed:
        raise ForbiddenError(
            "missing_scope", f"You cannot give the scope {min(missing)}: you do not have it."
        )
    parent, days = principal.token_id, request.expires_in_days
    shorter = parent is not None and await rows.expires_within(session, parent, days)
    far = None if days is None else days - 1
    told = "expires_in_days" in request.model_fields_set
    if parent is not None and told and await rows.expires_within(session, parent, far):
        message = "would outlive the token that makes it: ask for fewer days, or leave this out for the same end"
        raise InvalidError("outlives_parent", message, pointer="/expires_in_days")
    whose = (principal.project_id, principal.user_id)
    return await issue_token(session, *whose, request, parent_id=parent, same_end=shorter)


async def issue_token(
    session: Session,
    project_id: str,
    user_id: str,
    request: TokenRequest,
    *,
    parent_id: str | None = None,
    same_end: bool = False,
) -> TokenView:
    """Returns a new token of a user, with its secret. The caller has checked that this may be.

    Args:
        session: The transaction.
        project_id: Where it is good.
        user_id: Whose it is.
        request: Name, scopes and life.
        parent_id: The token that makes it.
        same_end: Whether it ends when its parent does, whatever the life in the request.
    """
    secret = new_secret("plr")
    scopes = sorted({scope.value for scope in request.scopes})
    token = TokenRow(
        id=new_id("tok"),
        project_id=project_id,
        user_id=user_id,
        parent_id=parent_id,
        name=request.name,
        secret_hash=hash_secret(secret),
        scopes=scopes,
    )
    session.add(token)
    await session.flush()
    if same_end and parent_id is not None:
        await rows.take_expiry(session, token.id, parent_id)
    elif request.expires_in_days is not None:
        await rows.set_expiry(session, token.id, request.expires_in_days)
    await session.refresh(token)
    rows.audit(session, project_id, f"user:{user_id}", "token.create", token.id)
    return _view(token, secret)


async def list_tokens(session: Session, principal: Principal, page: PageRequest) -> Page[TokenView]:
    """Returns tokens: all of the project for an admin, else the caller's own."""
    owner = None if principal.permits(Scope.ADMIN) else principal.user_id
    keys = keyset(page, rows.TOKEN_COLUMNS)
    return await pages.cut(
        await rows.tokens(session, principal.project_id, owner, keys), page, keys, _views
    )


async def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Ends a token at once, and all that it made.

    Workers' credentials go on, since a worker outlives who set it up.

    Raises:
        NotFoundError: If the caller sees no such token.
    """
    token = await rows.token(session, principal.project_id, token_id)
    if token is None or (token.user_id != principal.user_id and not principal.permits(Scope.ADMIN)):
        raise NotFoundError("token")
    ended = [token.id, *await _descendants(session, token.id)]
    await rows.revoke_tokens(session, ended)
    for ended_id in ended:
        rows.audit(
            session, principal.project_id, f"user:{principal.user_id}", "token.revoke", ended_id
        )


async def _descendants(session: Session, token_id: str) -> list[str]:
    """Returns the tokens that a token made, and that those made, without workers' credentials."""
    found: list[str] = []
    parents = [token_id]
    while parents:
        made = await rows.made_by(session, parents)
        parents = [token.id for token in made if token.scopes != [Scope.WORKER.value]]
        found += parents
    return found


async def _open_login(session: Session, user_id: str, project_id: str) -> Login:
    found = await rows.holder(session, user_id, project_id)
    if found is None:
        raise UnauthenticatedError("wrong_login", "This login is disabled. Ask an admin.")
    secret = new_secret("pls")
    opened = LoginSessionRow(
        id=new_id("ses"), project_id=project_id, user_id=user_id, secret_hash=hash_secret(secret)
    )
    session.add(opened)
    await session.flush()
    rows.audit(session, project_id, f"user:{user_id}", "login.open", opened.id)
    return Login(_principal(found, "cookie", _ROLES[found.role], session_id=opened.id), secret)


async def _rename(session: Session, user: UserRow, name: str) -> None:
    if await rows.user_by_name(session, name) is not None:
        raise ConflictError(
            "name_taken", "Another user has this name. Choose another.", pointer="/user"
        )
    user.name = name
    await session.flush()


async def _set_password(session: Session, user: UserRow, password: str) -> None:
    if password.lower() in _COMMON or password.lower() == user.name.lower():
        raise InvalidError(
            "weak_password",
            "This password is too easy to guess. Choose another.",
            pointer="/password",
        )
    user.password_hash = await asyncio.to_thread(_PASSWORDS.hash, password)
    await session.flush()
    await rows.end_other_logins(session, user.id)


def _verify(stored: str | None, password: str) -> bool:
    try:
        return _PASSWORDS.verify(stored or _NOBODYS, password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def _principal(
    found: rows.Holder,
    via: Via,
    scopes: frozenset[Scope],
    *,
    token_id: str | None = None,
    session_id: str | None = None,
) -> Principal:
    return Principal(
        project_id=found.project.id,
        project=found.project.name,
        user_id=found.user.id,
        user=found.user.name,
        via=via,
        scopes=scopes,
        token_id=token_id,
        session_id=session_id,
    )


async def _views(tokens: Sequence[TokenRow]) -> list[TokenView]:
    return [_view(token) for token in tokens]


def _view(token: TokenRow, secret: str | None = None) -> TokenView:
    return TokenView(
        id=token.id,
        parent_id=token.parent_id,
        name=token.name,
        scopes=[Scope(scope) for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
        secret=secret,
    )
