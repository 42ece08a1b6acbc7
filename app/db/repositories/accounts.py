"""Rows of a person's own logins and password. Secrets are passed to this module as hashes only."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.access import LoginSessionRow
from app.db.models.projects import UserRow
from app.db.repositories.keyset_pages import select_page
from app.db.repositories.login_sessions import build_live_login_conditions
from app.domain.paging import Keyset

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": LoginSessionRow.created_at,
    "last_used_at": LoginSessionRow.last_used_at,
}


async def is_opened_by_link(session: Session, session_id: str, seconds: float) -> bool:
    """Returns whether a one-time link opened a login within the last `seconds`."""
    query = select(LoginSessionRow.id).where(
        LoginSessionRow.id == session_id,
        LoginSessionRow.opened_by == "link",
        LoginSessionRow.created_at > db_now(-seconds),
    )
    return await session.scalar(query) is not None


async def replace_password(session: Session, user_id: str, old: str | None, new: str) -> bool:
    """Sets a user's password hash if it is still `old`; returns whether it was."""
    statement = (
        update(UserRow)
        .where(UserRow.id == user_id, UserRow.disabled_at.is_(None))
        .where(UserRow.password_hash.is_not_distinct_from(old))
        .values(password_hash=new)
        .returning(UserRow.id)
    )
    return await session.scalar(statement) is not None


async def list_live_sessions(
    session: Session, user_id: str, limits: tuple[float, float], keys: Keyset
) -> Sequence[LoginSessionRow]:
    """Returns a page of a user's logins that have not ended, and one row more.

    Args:
        session: A reading session.
        user_id: The user.
        limits: Longest time without use, and greatest age, in seconds.
        keys: The page.
    """
    query = select(LoginSessionRow).where(
        LoginSessionRow.user_id == user_id, *build_live_login_conditions(*limits)
    )
    return (await session.scalars(select_page(query, keys, COLUMNS, LoginSessionRow.id))).all()


async def end_session(session: Session, user_id: str, session_id: str) -> bool | None:
    """Ends a login of a user; returns whether the login was open, `None` if it does not exist."""
    mine = (LoginSessionRow.id == session_id, LoginSessionRow.user_id == user_id)
    statement = (
        update(LoginSessionRow)
        .where(*mine, LoginSessionRow.ended_at.is_(None))
        .values(ended_at=db_now())
        .returning(LoginSessionRow.id)
    )
    if await session.scalar(statement) is not None:
        return True
    found = await session.scalar(select(LoginSessionRow.id).where(*mine))
    return None if found is None else False
