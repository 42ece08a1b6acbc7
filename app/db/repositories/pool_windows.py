"""Rows of maintenance windows and reservations of pools."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import bindparam, delete, select

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.pools import PoolRow, PoolWindowRow
from app.domain.queue.windows import PlannedWindow
from palestra.contract.pool_windows import WindowKind


async def list_planned(session: Session, pools: Collection[str]) -> list[PlannedWindow]:
    """Returns the windows of the given pools that have not ended, in the order of their starts."""
    rows = await session.execute(_select_planned(), {"pools": list(pools)})
    return [
        PlannedWindow(
            id=row.id,
            pool=row.name,
            is_maintenance=row.kind == WindowKind.MAINTENANCE,
            start=row.starts_at,
            end=row.ends_at,
            workers=frozenset(row.workers),
            project_id=row.project_id,
            user_id=row.user_id,
            reason=row.reason,
        )
        for row in rows
    ]


@cache
def _select_planned() -> Any:
    return (
        select(
            PoolWindowRow.id,
            PoolRow.name,
            PoolWindowRow.kind,
            PoolWindowRow.starts_at,
            PoolWindowRow.ends_at,
            PoolWindowRow.workers,
            PoolWindowRow.project_id,
            PoolWindowRow.user_id,
            PoolWindowRow.reason,
        )
        .join(PoolRow, PoolRow.id == PoolWindowRow.pool_id)
        .where(
            PoolRow.name.in_(bindparam("pools", expanding=True)), PoolWindowRow.ends_at > db_now()
        )
        .order_by(PoolWindowRow.starts_at, PoolWindowRow.id)
    )


async def list_open(session: Session, pool_id: str) -> Sequence[PoolWindowRow]:
    """Returns the windows of a pool that have not ended, in the order of their starts."""
    query = select(PoolWindowRow).where(
        PoolWindowRow.pool_id == pool_id, PoolWindowRow.ends_at > db_now()
    )
    query = query.order_by(PoolWindowRow.starts_at, PoolWindowRow.id)
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def insert(session: Session, values: Mapping[str, Any]) -> PoolWindowRow:
    """Adds a window."""
    row = PoolWindowRow(**values)
    session.add(row)
    await session.flush()
    await session.refresh(row)
    return row


async def remove(session: Session, pool_id: str, window_id: str) -> PoolWindowRow | None:
    """Deletes a window of a pool and returns it; `None` if there is none."""
    row = await session.get(PoolWindowRow, window_id)
    if row is None or row.pool_id != pool_id:
        return None
    await session.execute(
        delete(PoolWindowRow)
        .where(PoolWindowRow.id == window_id)
        .execution_options(synchronize_session=False)
    )
    return row
