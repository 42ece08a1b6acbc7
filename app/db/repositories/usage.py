"""The ledger of device usage, and the sum of each account."""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from sqlalchemy import Table, func, select

from app.db.engine import Session
from app.db.models.snapshots import SnapshotRow
from app.db.models.usage import UsageAccountRow, UsageEntryRow
from app.db.upsert import build_insert
from app.domain.queue import usage
from palestra.contract.states import SnapshotState


async def add_entry(session: Session, entry: Mapping[str, Any]) -> None:
    """Appends an entry, and adds it to its account if its kind is `used`.

    A second entry of the same kind for the same attempt changes nothing.
    """
    connection = await session.connection()
    dialect = connection.dialect.name
    if (await connection.execute(_insert_entry(dialect), dict(entry))).first() is None:
        return
    if entry["kind"] != "used":
        return
    seconds = usage.weighted_seconds(entry["devices"], entry["started_at"], entry["ended_at"])
    account = {name: entry[name] for name in ("pool", "project_id", "user_id")}
    await connection.execute(_add_to_account(dialect), {**account, "weighted_seconds": seconds})


# Built once: every attempt that ends executes them.
@cache
def _insert_entry(dialect: str) -> Any:
    table = cast("Table", UsageEntryRow.__table__)
    return build_insert(dialect, table).on_conflict_do_nothing().returning(table.c.id)


@cache
def _add_to_account(dialect: str) -> Any:
    table = cast("Table", UsageAccountRow.__table__)
    statement = build_insert(dialect, table)
    total = table.c.weighted_seconds + statement.excluded.weighted_seconds
    key = list(table.primary_key)
    return statement.on_conflict_do_update(index_elements=key, set_={"weighted_seconds": total})


async def find_newest_snapshot_time(session: Session, attempt_id: str) -> Any:
    """Returns when the newest verified snapshot of an attempt was made; `None` without one."""
    query = select(func.max(SnapshotRow.created_at)).where(
        SnapshotRow.attempt_id == attempt_id, SnapshotRow.state == SnapshotState.VERIFIED
    )
    return await session.scalar(query)
