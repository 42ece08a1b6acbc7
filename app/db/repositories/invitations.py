"""Rows of invitations. Their codes are passed to this module as hashes only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.invitations import InvitationRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories.keyset_pages import select_page
from app.db.upsert import insert_new
from app.domain.paging import Keyset
from palestra.contract.permissions import Role

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": InvitationRow.created_at,
    "expires_at": InvitationRow.expires_at,
}

_OPEN: Final = (InvitationRow.redeemed_at.is_(None), InvitationRow.revoked_at.is_(None))


async def insert(session: Session, row: InvitationRow, seconds: float) -> None:
    """Adds an invitation that expires in `seconds` by the database's clock."""
    row.expires_at = db_now(seconds)
    session.add(row)
    await session.flush()
    await session.refresh(row)


async def list_page(session: Session, keys: Keyset) -> Sequence[InvitationRow]:
    """Returns a page of invitations and one row more."""
    query = select_page(select(InvitationRow), keys, COLUMNS, InvitationRow.id)
    return (await session.scalars(query)).all()


async def find_by_code(session: Session, code_hash: str) -> tuple[InvitationRow, bool] | None:
    """Returns the invitation of a code, and whether the invitation has expired."""
    query = select(InvitationRow, InvitationRow.expires_at <= db_now())
    found = (await session.execute(query.where(InvitationRow.code_hash == code_hash))).one_or_none()
    return None if found is None else (found[0], bool(found[1]))


async def redeem(session: Session, invitation_id: str, user_id: str) -> bool:
    """Marks an invitation as redeemed; returns whether it was open.

    Of concurrent calls only one succeeds.
    """
    statement = (
        update(InvitationRow)
        .where(InvitationRow.id == invitation_id, *_OPEN, InvitationRow.expires_at > db_now())
        .values(redeemed_at=db_now(), redeemed_by=user_id)
        .returning(InvitationRow.id)
    )
    return await session.scalar(statement) is not None


async def revoke(session: Session, invitation_id: str) -> bool:
    """Revokes an invitation; returns whether it was neither redeemed nor revoked."""
    statement = (
        update(InvitationRow)
        .where(InvitationRow.id == invitation_id, *_OPEN)
        .values(revoked_at=db_now())
        .returning(InvitationRow.id)
    )
    return await session.scalar(statement) is not None


async def find(session: Session, invitation_id: str) -> InvitationRow | None:
    """Returns an invitation."""
    return await session.get(InvitationRow, invitation_id, populate_existing=True)


async def insert_user(session: Session, values: Mapping[str, Any]) -> bool:
    """Adds a user; returns false if another user has the login name."""
    statement = insert_new(session, UserRow, [dict(values)]).returning(UserRow.id)
    return (await session.execute(statement)).one_or_none() is not None


async def insert_memberships(
    session: Session, user_id: str, roles: Mapping[str, Role]
) -> list[str]:
    """Makes a user a member of those projects that still exist; returns their IDs.

    Args:
        session: A writing session.
        user_id: A user without memberships.
        roles: Role by the project's ID.
    """
    there = select(ProjectRow.id).where(ProjectRow.id.in_(roles), ProjectRow.deleted_at.is_(None))
    found = sorted(await session.scalars(there))
    for project_id in found:
        role = roles[project_id]
        session.add(MembershipRow(project_id=project_id, user_id=user_id, role=role))
    await session.flush()
    return found


async def list_live_projects(session: Session) -> Sequence[ProjectRow]:
    """Returns all projects that are not deleted, by name."""
    query = select(ProjectRow).where(ProjectRow.deleted_at.is_(None))
    return (await session.scalars(query.order_by(ProjectRow.name, ProjectRow.id))).all()


async def filter_expired(session: Session, invitation_ids: Collection[str]) -> set[str]:
    """Returns the IDs of the given invitations that have expired."""
    mine = InvitationRow.id.in_(invitation_ids)
    over = select(InvitationRow.id).where(mine, InvitationRow.expires_at <= db_now())
    return set(await session.scalars(over))
