"""Finds the user of a credential, with the user's memberships, by one statement.

Each request of a user executes one of the two statements, so they are built once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import String, bindparam, or_, select
from sqlalchemy.orm import aliased

from app.db.engine import Database, Session
from app.db.models.access import LoginSessionRow, TokenRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories.access import CallingUser
from app.db.repositories.combined_reads import Read, look_up
from app.db.repositories.login_sessions import build_live_login_conditions
from app.db.repositories.tokens import build_live_token_conditions
from app.domain.principal import Membership
from palestra.contract.permissions import Role

_PROJECT = aliased(ProjectRow)
"""Project of a membership; that of a token is another one for the statement."""
_USER = (
    UserRow.id.label("user_id"), UserRow.name.label("user"), UserRow.display_name, UserRow.is_admin,
    UserRow.service_project_id, UserRow.made_by,
)  # fmt: skip
_MEMBERSHIP = (
    _PROJECT.id.label("member_of"), _PROJECT.slug, _PROJECT.name, MembershipRow.role,
    _PROJECT.archived_at.is_not(None).label("is_archived"),
)  # fmt: skip
_TOKEN = (TokenRow.id, TokenRow.project_id, TokenRow.scopes)


@dataclass(frozen=True, slots=True)
class Caller:
    """A user who calls with a token or a browser login, neither of which has ended.

    Attributes:
        user: The user, who is not disabled.
        memberships: By the project's name; of a token of one project the one in it alone.
    """

    user: CallingUser
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class TokenCaller(Caller):
    """A caller with a token, which has an ID, the project that limits it, and scopes."""

    token_id: str
    project_id: str | None
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True)
class LoginCaller(Caller):
    """A caller with a browser login."""

    login_id: str


async def find_by_token(source: Database | Session, secret_hash: str) -> TokenCaller | None:
    """Returns the caller with a live token; `None` if there is none or its user is disabled."""
    rows = await look_up(source, Read(_select_by_token(), {"given_hash": secret_hash}))
    if not rows:
        return None
    caller = _read_caller(rows, len(_TOKEN))
    token_id, project_id, scopes = rows[0][: len(_TOKEN)]
    return TokenCaller(caller.user, caller.memberships, token_id, project_id, scopes)


async def find_by_login(
    source: Database | Session, secret_hash: str, idle_seconds: float, max_seconds: float
) -> LoginCaller | None:
    """Returns the caller with a live login; `None` if there is none or its user is disabled."""
    statement = _select_by_login(idle_seconds, max_seconds)
    rows = await look_up(source, Read(statement, {"given_hash": secret_hash}))
    if not rows:
        return None
    caller = _read_caller(rows, 1)
    return LoginCaller(caller.user, caller.memberships, rows[0][0])


def _read_caller(rows: Sequence[Any], begin: int) -> Caller:
    """Returns the user and the memberships from rows whose other columns are before `begin`."""
    end = begin + len(_USER)
    memberships = (
        Membership(project_id=project_id, slug=slug, name=name, role=Role(role), archived=archived)
        for project_id, slug, name, role, archived in (row[end:] for row in rows)
        if project_id is not None
    )
    return Caller(CallingUser(*rows[0][begin:end]), tuple(memberships))


@cache
def _select_by_token() -> Any:
    is_covered = or_(TokenRow.project_id.is_(None), TokenRow.project_id == MembershipRow.project_id)
    return (
        _select_callers(*_TOKEN)
        .select_from(TokenRow)
        .join(UserRow, UserRow.id == TokenRow.user_id)
        .outerjoin(MembershipRow, (MembershipRow.user_id == UserRow.id) & is_covered)
        .outerjoin(_PROJECT, _is_project_of_membership())
        .where(*build_live_token_conditions(bindparam("given_hash", type_=String())))
    )


@cache
def _select_by_login(idle_seconds: float, max_seconds: float) -> Any:
    return (
        _select_callers(LoginSessionRow.id)
        .select_from(LoginSessionRow)
        .join(UserRow, UserRow.id == LoginSessionRow.user_id)
        .outerjoin(MembershipRow, MembershipRow.user_id == UserRow.id)
        .outerjoin(_PROJECT, _is_project_of_membership())
        .where(
            LoginSessionRow.secret_hash == bindparam("given_hash", type_=String()),
            *build_live_login_conditions(idle_seconds, max_seconds),
        )
    )


def _select_callers(*columns: Any) -> Any:
    return (
        select(*columns, *_USER, *_MEMBERSHIP)
        .where(UserRow.disabled_at.is_(None))
        .order_by(_PROJECT.name, _PROJECT.id)
    )


def _is_project_of_membership() -> Any:
    return (_PROJECT.id == MembershipRow.project_id) & _PROJECT.deleted_at.is_(None)
