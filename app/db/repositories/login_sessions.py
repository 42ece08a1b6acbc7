"""Rows of browser logins. Secrets are passed to this module as hashes only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.access import LoginSessionRow


async def list_live_logins(
    session: Session, session_ids: Collection[str], idle_seconds: float, max_seconds: float
) -> Sequence[LoginSessionRow]:
    """Returns the given logins that are still valid."""
    mine = LoginSessionRow.id.in_(session_ids)
    query = select(LoginSessionRow).where(
        mine, *build_live_login_conditions(idle_seconds, max_seconds)
    )
    return (await session.scalars(query)).all()


def build_live_login_conditions(
    idle_seconds: float, max_seconds: float
) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions of a login that has not ended, is in use and is not too old."""
    return (
        LoginSessionRow.ended_at.is_(None),
        LoginSessionRow.last_used_at > db_now(-idle_seconds),
        LoginSessionRow.created_at > db_now(-max_seconds),
    )


async def insert(session: Session, values: Mapping[str, Any]) -> LoginSessionRow:
    """Adds a browser login."""
    login = LoginSessionRow(**values)
    session.add(login)
    await session.flush()
    return login


async def end_login(session: Session, session_id: str) -> None:
    """Ends a browser login: its cookie is not accepted any more."""
    await session.execute(
        update(LoginSessionRow).where(LoginSessionRow.id == session_id).values(ended_at=db_now())
    )
