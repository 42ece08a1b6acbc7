"""The ledger of device usage, and the sum of each account."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from app.db.engine import Session
from app.db.models.snapshots import SnapshotRow
from app.db.models.usage import UsageAccountRow, UsageEntryRow
from app.db.upsert import insert_new, insert_or_add
from app.domain.queue import usage
from palestra.contract.states import SnapshotState


async def add_entry(session: Session, entry: Mapping[str, Any]) -> None:
    """Appends an entry, and adds it to its account if its kind is `used`.

    A second entry of the same kind for the same attempt changes nothing.
    """
    statement = insert_new(session, UsageEntryRow, [dict(entry)]).returning(UsageEntryRow.id)
    if (await session.execute(statement)).first() is None or entry["kind"] != "used":
        return
    seconds = usage.weighted_seconds(entry["devices"], entry["started_at"], entry["ended_at"])
    account = {
        "pool": entry["pool"],
        "project_id": entry["project_id"],
        "user_id": entry["user_id"],
        "weighted_seconds": seconds,
    }
    await session.execute(insert_or_add(session, UsageAccountRow, account, "weighted_seconds"))


async def find_newest_snapshot_time(session: Session, attempt_id: str) -> Any:
    """Returns when the newest verified snapshot of an attempt was made; `None` without one."""
    query = select(func.max(SnapshotRow.created_at)).where(
        SnapshotRow.attempt_id == attempt_id, SnapshotRow.state == SnapshotState.VERIFIED.value
    )
    return await session.scalar(query)
