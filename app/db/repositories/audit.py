"""The audit log: appends to the chain and reads it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from sqlalchemy import CursorResult, Table, bindparam, insert, select, update
from sqlalchemy.orm import Session as SyncSession

from app.db.clock import EPOCH
from app.db.engine import Session
from app.db.models.audit import AuditChainRow, AuditRow
from app.db.repositories import pending_rows
from app.domain.audit_chain import BEGIN, GENESIS, ChainPlace, hash_entry

_LOG: Final = "audit"
_HASHED: Final = (
    "id",
    "project_id",
    "actor",
    "user_id",
    "credential",
    "address",
    "action",
    "object_type",
    "object_id",
    "outcome",
    "code",
    "count",
    "data",
)
"""Columns whose values the hash covers as they are."""


# Statements of the tables, built once: those of the mapped classes take longer at every commit.
_ENTRIES: Final = cast("Table", AuditRow.__table__)
_CHAIN: Final = cast("Table", AuditChainRow.__table__)
_INSERT: Final = insert(_ENTRIES)
_ADVANCE: Final = (
    update(_CHAIN)
    .where(
        _CHAIN.c.id == 1,
        _CHAIN.c.last_id == bindparam("of_id"),
        _CHAIN.c.last_hash == bindparam("of_hash"),
    )
    .values(last_id=bindparam("to_id"), last_hash=bindparam("to_hash"))
)

_last_known: Final[WeakKeyDictionary[Any, ChainPlace]] = WeakKeyDictionary()
"""The last entry that this process wrote, by engine.

It spares a query for each commit. It may be wrong, since other processes write too and a commit may
fail: `_advance` compares it with the stored one.
"""


def append(session: Session, row: dict[str, Any]) -> None:
    """Keeps an entry until the session commits, when it gets id, time and hash.

    Args:
        session: A writing session.
        row: Columns of `AuditRow` up to `data`. Columns without a value may be left out; `outcome`
            is `allowed` by default.
    """
    pending_rows.append(session, _LOG, {"outcome": "allowed", "count": 1, **row})


async def list_for_object(
    session: Session, project_id: str, object_type: str, object_id: str
) -> Sequence[AuditRow]:
    """Returns the audit rows of one object, oldest first."""
    query = select(AuditRow).where(
        AuditRow.project_id == project_id,
        AuditRow.object_type == object_type,
        AuditRow.object_id == object_id,
    )
    return (await session.scalars(query.order_by(AuditRow.id))).all()


def compute_hash(row: AuditRow) -> str:
    """Returns the hash that a stored entry should have."""
    return _hash({name: getattr(row, name) for name in _HASHED}, row.at, row.previous_hash)


def _hash(columns: dict[str, Any], at: datetime, previous_hash: str) -> str:
    microseconds = (at - EPOCH) // timedelta(microseconds=1)
    return hash_entry({**columns, "at": microseconds}, previous_hash)


def _insert(session: SyncSession, rows: list[dict[str, Any]]) -> None:
    engine = session.get_bind()
    at = pending_rows.read_time(session)
    begin = _last_known.get(engine) or _load_stored_end(session)
    chained = _chain_rows(rows, at, begin)
    if not _advance(session, begin, _end(chained)):
        begin = _load_stored_end(session)
        chained = _chain_rows(rows, at, begin)
        _advance(session, begin, _end(chained))
    session.execute(_INSERT, chained)
    _last_known[engine] = _end(chained)


def _chain_rows(
    rows: list[dict[str, Any]], at: datetime, begin: ChainPlace
) -> list[dict[str, Any]]:
    """Returns complete rows: with id, time, and the hashes that continue the chain from `begin`."""
    chained: list[dict[str, Any]] = []
    last = begin
    for row in rows:
        columns = {name: row.get(name) for name in _HASHED} | {"id": last.id + 1}
        digest = _hash(columns, at, last.hash)
        chained.append({**columns, "at": at, "previous_hash": last.hash, "hash": digest})
        last = ChainPlace(last.id + 1, digest)
    return chained


def _end(rows: list[dict[str, Any]]) -> ChainPlace:
    return ChainPlace(rows[-1]["id"], rows[-1]["hash"])


def _advance(session: SyncSession, begin: ChainPlace, end: ChainPlace) -> bool:
    """Moves the stored end of the chain; returns false if it is not `begin`."""
    places = {"of_id": begin.id, "of_hash": begin.hash, "to_id": end.id, "to_hash": end.hash}
    result = session.execute(_ADVANCE, places)
    return isinstance(result, CursorResult) and result.rowcount == 1


def _load_stored_end(session: SyncSession) -> ChainPlace:
    """Returns the stored end of the chain; stores the initial end if there is none."""
    query = select(AuditChainRow.last_id, AuditChainRow.last_hash)
    found = session.execute(query.where(AuditChainRow.id == 1)).one_or_none()
    if found is not None:
        return ChainPlace(*found)
    newest = session.execute(
        select(AuditRow.id, AuditRow.hash).order_by(AuditRow.id.desc()).limit(1)
    ).one_or_none()
    end = BEGIN if newest is None else ChainPlace(*newest)
    ends = {"last_id": end.id, "last_hash": end.hash}
    session.execute(
        insert(AuditChainRow),
        {"id": 1, **ends, "checkpoint_id": 0, "checkpoint_hash": GENESIS},
    )
    return end


pending_rows.register(_LOG, _insert)
