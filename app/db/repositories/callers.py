"""Finds who calls by a credential: a user with memberships, an attempt, a worker or an enrolment.

Each request executes one of the statements, so they are built once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import String, bindparam, or_, select
from sqlalchemy.orm import aliased

from app.db.clock import db_now
from app.db.engine import Database, Session
from app.db.models.access import LoginSessionRow, TokenRow
from app.db.models.jobs import AttemptRow
from app.db.models.pools import EnrolmentTokenRow, PoolRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.models.workers import WorkerRow
from app.db.prepared import Read, look_up
from app.db.repositories.access import CallingUser
from app.db.repositories.login_sessions import build_live_login_conditions
from app.db.repositories.tokens import build_live_token_conditions
from app.domain.principal import Membership

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
        Membership(project_id=project_id, slug=slug, name=name, role=role, archived=archived)
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


class CallingAttempt(NamedTuple):
    """The attempt that a token belongs to."""

    id: str
    project_id: str


async def find_attempt(source: Database | Session, secret_hash: str) -> CallingAttempt | None:
    """Returns the attempt that a token belongs to, live or ended.

    The services decide what an ended attempt may still do.
    """
    rows = await look_up(source, Read(_select_attempt(), {"given_hash": secret_hash}))
    return CallingAttempt(*rows[0]) if rows else None


@cache
def _select_attempt() -> Any:
    query = select(AttemptRow.id, AttemptRow.project_id)
    return query.where(AttemptRow.token_hash == bindparam("given_hash", type_=String()))


class CallingWorker(NamedTuple):
    """The worker that a secret belongs to, with the hash of its present secret."""

    id: str
    name: str
    pool: str
    secret_hash: str | None


async def find_worker(source: Database | Session, secret_hash: str) -> CallingWorker | None:
    """Returns the worker whose secret, or whose pending new secret, has this hash."""
    rows = await look_up(source, Read(_select_worker(), {"given_hash": secret_hash}))
    return CallingWorker(*rows[0]) if rows else None


@cache
def _select_worker() -> Any:
    given: Any = bindparam("given_hash", type_=String())
    own = or_(WorkerRow.secret_hash == given, WorkerRow.next_secret_hash == given)
    return select(WorkerRow.id, WorkerRow.name, WorkerRow.pool, WorkerRow.secret_hash).where(own)


class CallingEnrolment(NamedTuple):
    """A token that enrols workers, with the name of its pool."""

    id: str
    name: str
    pool: str


async def find_enrolment(source: Database | Session, secret_hash: str) -> CallingEnrolment | None:
    """Returns the valid enrolment token with this hash."""
    rows = await look_up(source, Read(_select_enrolment(), {"given_hash": secret_hash}))
    return CallingEnrolment(*rows[0]) if rows else None


@cache
def _select_enrolment() -> Any:
    row = EnrolmentTokenRow
    return (
        select(row.id, row.name, PoolRow.name.label("pool"))
        .join(PoolRow, PoolRow.id == row.pool_id)
        .where(
            row.secret_hash == bindparam("given_hash", type_=String()),
            row.revoked_at.is_(None),
            or_(row.expires_at.is_(None), row.expires_at > db_now()),
        )
    )
