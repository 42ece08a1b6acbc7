"""Searches, reads and removes entries of the audit log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, delete, func, literal, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.audit import AuditChainRow, AuditRow
from app.db.models.projects import UserRow
from app.db.repositories import pending_rows
from app.domain.audit_chain import ChainPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter of the entries to read; a member that is `None` takes all."""

    project_ids: Collection[str] | None = None
    """Entries that concern these projects; `None` takes those that concern none too."""
    user: str | None = None
    """ID or name of a user."""
    object_type: str | None = None
    object_id: str | None = None
    action: str | None = None
    """The action, or what it begins with."""
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class ChainEnds:
    """Where the stored chain begins and ends."""

    checkpoint: ChainPlace
    """The last entry that was removed."""
    last: ChainPlace


async def list_newest_first(
    session: Session, wanted: AuditFilter, *, before: int | None, limit: int
) -> Sequence[AuditRow]:
    """Returns the newest entries, optionally only those before an ID."""
    query = _filtered(wanted)
    if before is not None:
        query = query.where(AuditRow.id < before)
    return (await session.scalars(query.order_by(AuditRow.id.desc()).limit(limit))).all()


async def list_oldest_first(
    session: Session, wanted: AuditFilter, *, after: int, last: int | None = None, limit: int
) -> Sequence[AuditRow]:
    """Returns the entries after an ID, optionally only up to the ID `last`."""
    query = _filtered(wanted).where(AuditRow.id > after)
    if last is not None:
        query = query.where(AuditRow.id <= last)
    return (await session.scalars(query.order_by(AuditRow.id).limit(limit))).all()


def _filtered(wanted: AuditFilter) -> Select[AuditRow]:
    query = select(AuditRow)
    for column, value in (
        (AuditRow.object_id, wanted.object_id),
        (AuditRow.object_type, wanted.object_type),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.outcome is not None:
        # The value is a literal, since a partial index is not used for a bound parameter.
        query = query.where(AuditRow.outcome == literal(wanted.outcome, literal_execute=True))
    if wanted.project_ids is not None:
        query = query.where(AuditRow.project_id.in_(wanted.project_ids))
    if wanted.user is not None:
        named = select(UserRow.id).where(UserRow.name == wanted.user).scalar_subquery()
        query = query.where(
            AuditRow.user_id == (wanted.user if wanted.user.startswith("usr_") else named)
        )
    if wanted.action is not None:
        # LIKE would ignore the case of ASCII letters on SQLite and not on PostgreSQL.
        beginning = func.substr(AuditRow.action, 1, len(wanted.action))
        query = query.where(beginning == wanted.action)
        # The type is the first part of the action, and its column has an index.
        kind, dot, _ = wanted.action.partition(".")
        query = query.where(AuditRow.object_type == kind) if dot else query
    if wanted.since is not None:
        query = query.where(AuditRow.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(AuditRow.at < wanted.until)
    return query


async def load_user_names(session: Session, user_ids: Collection[str]) -> Mapping[str, str]:
    """Returns the names of users by id; deleted users are left out."""
    query = select(UserRow.id, UserRow.name).where(UserRow.id.in_(user_ids))
    return {row.id: row.name for row in await session.execute(query)}


async def read_ends(session: Session) -> ChainEnds | None:
    """Returns the stored ends of the chain; `None` before its first entry."""
    query = select(AuditChainRow).execution_options(populate_existing=True)
    chain = await session.scalar(query)
    return None if chain is None else ChainEnds(*_places(chain))


def _places(chain: AuditChainRow) -> tuple[ChainPlace, ChainPlace]:
    return (
        ChainPlace(chain.checkpoint_id, chain.checkpoint_hash),
        ChainPlace(chain.last_id, chain.last_hash),
    )


async def find_outside_ends(session: Session) -> int | None:
    """Returns the first id of an entry outside the stored ends of the chain; `None` for none."""
    begin, end = (
        select(func.coalesce(func.max(column), 0)).scalar_subquery()
        for column in (AuditChainRow.checkpoint_id, AuditChainRow.last_id)
    )
    outside = (AuditRow.id <= begin) | (AuditRow.id > end)
    return await session.scalar(select(func.min(AuditRow.id)).where(outside))


async def lock(session: Session) -> None:
    """Locks the log against other appends until the transaction ends."""
    await session.run_sync(pending_rows.lock)


async def has_older(session: Session, seconds: float) -> bool:
    """Returns whether the oldest entry is older than `seconds`."""
    query = select(AuditRow.at < db_now(-seconds)).order_by(AuditRow.id).limit(1)
    return bool(await session.scalar(query))


async def find_last_older(session: Session, seconds: float, *, limit: int) -> ChainPlace | None:
    """Returns the last of the oldest entries, at most `limit`, that are older than `seconds`."""
    query = select(AuditRow.id, AuditRow.hash, AuditRow.at < db_now(-seconds))
    last = None
    for row_id, digest, is_older in await session.execute(query.order_by(AuditRow.id).limit(limit)):
        if not is_older:
            break
        last = ChainPlace(row_id, digest)
    return last


async def remove_through(session: Session, place: ChainPlace) -> None:
    """Deletes the entries up to a place, which becomes the checkpoint of the chain."""
    await session.execute(
        delete(AuditRow).where(AuditRow.id <= place.id).execution_options(synchronize_session=False)
    )
    await session.execute(
        update(AuditChainRow).values(checkpoint_id=place.id, checkpoint_hash=place.hash)
    )
