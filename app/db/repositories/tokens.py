"""Rows of API tokens and of service accounts. Secrets are passed to this module as hashes only."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories.keyset_pages import select_page
from app.db.upsert import insert_new
from app.domain.paging import Keyset
from palestra.contract.permissions import Role

TOKEN_COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": TokenRow.created_at,
    "name": TokenRow.name,
}


def build_live_token_conditions(secret_hash: ColumnElement[str]) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions of a token that is neither revoked nor expired, by its secret's hash.

    Its expiry is told by the database's clock. A token of a deleted project does not match. The
    secret before a rotation matches too, until the chosen overlap has passed.
    """
    before = (TokenRow.previous_hash == secret_hash) & (TokenRow.previous_until > db_now())
    return or_(TokenRow.secret_hash == secret_hash, before), *_token_is_live()


async def list_live_tokens(session: Session, token_ids: Collection[str]) -> Sequence[TokenRow]:
    """Returns the given tokens that are neither revoked nor expired."""
    return (
        await session.scalars(select(TokenRow).where(TokenRow.id.in_(token_ids), *_token_is_live()))
    ).all()


def _token_is_live() -> tuple[ColumnElement[bool], ...]:
    fresh = (TokenRow.expires_at.is_(None)) | (TokenRow.expires_at > db_now())
    deleted = (ProjectRow.id == TokenRow.project_id, ProjectRow.deleted_at.is_not(None))
    return TokenRow.revoked_at.is_(None), fresh, ~exists().where(*deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFilter:
    """Filter of tokens: the tokens of a user, and of all users in the given projects."""

    user_id: str
    project_ids: Collection[str] = ()
    only_in: Collection[str] | None = None
    """Projects to which the tokens must be limited; `None` for no such condition."""


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """A token that was just revoked."""

    id: str
    name: str
    project_id: str | None


async def list_page(session: Session, wanted: TokenFilter, keys: Keyset) -> Sequence[TokenRow]:
    """Returns a page of tokens and one row more."""
    query = select(TokenRow).where(_is_wanted(wanted))
    return (await session.scalars(select_page(query, keys, TOKEN_COLUMNS, TokenRow.id))).all()


async def find_token(session: Session, wanted: TokenFilter, token_id: str) -> TokenRow | None:
    """Returns a token if it matches the filter."""
    return await session.scalar(select(TokenRow).where(_is_wanted(wanted), TokenRow.id == token_id))


def _is_wanted(wanted: TokenFilter) -> ColumnElement[bool]:
    seen = or_(TokenRow.user_id == wanted.user_id, TokenRow.project_id.in_(wanted.project_ids))
    return seen if wanted.only_in is None else seen & TokenRow.project_id.in_(wanted.only_in)


async def insert(session: Session, values: Mapping[str, Any]) -> TokenRow:
    """Adds a token, which never expires."""
    token = TokenRow(**values)
    session.add(token)
    await session.flush()
    return token


async def reload(session: Session, token: TokenRow) -> None:
    """Reads the columns of a token again."""
    await session.refresh(token)


async def set_expiry(session: Session, token_id: str, days: int) -> None:
    """Sets a token to expire `days` from now by the database's clock."""
    await session.execute(
        update(TokenRow).where(TokenRow.id == token_id).values(expires_at=db_now(days * 86_400.0))
    )


async def expires_within(session: Session, token_id: str, days: int | None) -> bool:
    """Returns whether a token expires earlier than `days` from now.

    `days` of `None` stands for a token that never expires.
    """
    ends = TokenRow.expires_at.is_not(None)
    earlier = ends if days is None else ends & (TokenRow.expires_at < db_now(days * 86_400.0))
    return (
        await session.scalar(select(TokenRow.id).where(TokenRow.id == token_id, earlier))
        is not None
    )


async def copy_expiry(session: Session, token_id: str, parent_id: str) -> None:
    """Sets a token to expire together with its parent."""
    expiry = select(TokenRow.expires_at).where(TokenRow.id == parent_id).scalar_subquery()
    await session.execute(update(TokenRow).where(TokenRow.id == token_id).values(expires_at=expiry))


async def limit_expiry(session: Session, token_ids: Collection[str], than: str) -> None:
    """Sets the expiry of tokens to that of another token if they would expire later."""
    statement = (
        update(TokenRow)
        .where(TokenRow.id.in_(token_ids), _ends_after(than))
        .values(expires_at=_end_of(than))
        .execution_options(synchronize_session=False)
    )
    await session.execute(statement)


async def outlives(session: Session, token_id: str, than: str) -> bool:
    """Returns whether a token expires later than another token."""
    query = select(TokenRow.id).where(TokenRow.id == token_id, _ends_after(than))
    return await session.scalar(query) is not None


def _ends_after(token_id: str) -> ColumnElement[bool]:
    end = _end_of(token_id)
    return end.is_not(None) & (TokenRow.expires_at.is_(None) | (TokenRow.expires_at > end))


def _end_of(token_id: str) -> ScalarSelect[datetime | None]:
    other = aliased(TokenRow)
    return select(other.expires_at).where(other.id == token_id).scalar_subquery()


async def list_children(session: Session, token_ids: Collection[str]) -> Sequence[TokenRow]:
    """Returns the tokens whose parent is one of the given tokens."""
    return (await session.scalars(select(TokenRow).where(TokenRow.parent_id.in_(token_ids)))).all()


async def lock_live(session: Session, token_id: str) -> bool:
    """Returns whether a token is neither revoked nor expired, and keeps it from being revoked.

    A revocation waits until the transaction ends.
    """
    query = select(TokenRow.id).where(TokenRow.id == token_id, *_token_is_live())
    return await session.scalar(query.with_for_update(read=True)) is not None


async def revoke_tokens(session: Session, token_ids: Collection[str]) -> Sequence[RevokedToken]:
    """Ends tokens; returns those that were not revoked before."""
    statement = (
        update(TokenRow)
        .where(TokenRow.id.in_(token_ids), TokenRow.revoked_at.is_(None))
        .values(revoked_at=db_now())
        .returning(TokenRow.id, TokenRow.name, TokenRow.project_id)
        .execution_options(synchronize_session=False)
    )
    return [RevokedToken(*row) for row in await session.execute(statement)]


async def rotate(session: Session, token_id: str, secret_hash: str, overlap_hours: int) -> bool:
    """Gives a live token a new secret; returns false if it is not live.

    The previous secret stays valid for `overlap_hours`; an older secret ends at once.
    """
    statement = (
        update(TokenRow)
        .where(TokenRow.id == token_id, *_token_is_live())
        .values(
            previous_hash=TokenRow.secret_hash,
            previous_until=db_now(overlap_hours * 3_600.0),
            secret_hash=secret_hash,
        )
        .returning(TokenRow.id)
    )
    return await session.scalar(statement) is not None


async def insert_user(session: Session, values: Mapping[str, Any]) -> bool:
    """Inserts a user; returns false if the login name is taken."""
    statement = insert_new(session, UserRow, [dict(values)]).returning(UserRow.id)
    return (await session.execute(statement)).one_or_none() is not None


async def list_service_accounts(
    session: Session, project_id: str, name: str | None = None
) -> list[tuple[UserRow, Role, int, datetime | None]]:
    """Returns the service accounts of a project by name, or the one that is named `name`.

    Each with its role, its number of live tokens, and when one of its tokens was last used.
    """
    live = and_(TokenRow.user_id == UserRow.id, *_token_is_live())
    count = select(func.count()).where(live).scalar_subquery()
    last_used = select(func.max(TokenRow.last_used_at)).where(TokenRow.user_id == UserRow.id)
    query = (
        select(UserRow, MembershipRow.role, count, last_used.scalar_subquery())
        .join(MembershipRow, MembershipRow.user_id == UserRow.id)
        .where(
            MembershipRow.project_id == project_id,
            UserRow.service_project_id == project_id,
            UserRow.disabled_at.is_(None),
        )
        .order_by(UserRow.name)
    )
    if name is not None:
        query = query.where(UserRow.name == name)
    return [
        (user, role, live_count, used)
        for user, role, live_count, used in await session.execute(query)
    ]


async def retire(session: Session, user_id: str) -> None:
    """Disables a service account, revokes its tokens and ends its membership."""
    live = (TokenRow.user_id == user_id, TokenRow.revoked_at.is_(None))
    await session.execute(update(TokenRow).where(*live).values(revoked_at=db_now()))
    await session.execute(update(UserRow).where(UserRow.id == user_id).values(disabled_at=db_now()))
    await session.execute(delete(MembershipRow).where(MembershipRow.user_id == user_id))
