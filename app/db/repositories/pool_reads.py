"""What a decision reads of a pool beside its workers and its jobs: shares, usage and groups.

On PostgreSQL one statement reads it, as JSON: some hundred accounts and groups cost a multiple of
the time of their JSON if they are read row by row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any, Final

import orjson
from sqlalchemy import BigInteger, Select, Text, bindparam, cast, exists, func, select

from app.db import clock
from app.db.clock import EPOCH, db_now
from app.db.engine import Session
from app.db.models.pools import PoolRow, PoolWindowRow, QuotaRow
from app.db.repositories import queue_groups, start_order
from app.db.repositories.start_order import LiveUsage
from app.domain.queue.start_order import Group, UsageAccount
from palestra.contract.names import PriorityClass

_MAX_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRead:
    """A pool at one time."""

    now: datetime
    """The database's time."""
    shares: Mapping[str, float]
    """Of each admitted project, by project ID."""
    used: dict[UsageAccount, float]
    """Usage of each account by attempts that have ended."""
    live: list[LiveUsage]
    groups: Mapping[Group, datetime]
    """Groups that may have queued jobs, with since when each waits."""
    has_quotas: bool
    has_windows: bool
    """Whether there are windows that have not ended."""


async def read_pool(session: Session, pool: str) -> PoolRead:
    """Reads a pool."""
    if session.get_bind().dialect.name == "postgresql":
        return _parse((await session.execute(_select_all(), {"pool": pool})).one())
    return PoolRead(
        now=await clock.now(session),
        shares=await start_order.load_shares(session, pool),
        used=await start_order.load_usage(session, pool),
        live=await start_order.load_live_usage(session, pool),
        groups=await queue_groups.list_groups(session, pool),
        has_quotas=True,
        has_windows=True,
    )


@cache
def _select_all() -> Any:
    mine = select(PoolRow.id).where(PoolRow.name == bindparam("pool")).scalar_subquery()
    quotas = exists().where(QuotaRow.pool_id == mine)
    windows = exists().where(PoolWindowRow.pool_id == mine, PoolWindowRow.ends_at > db_now())
    groups = queue_groups.select_groups().subquery()
    since = cast(func.extract("epoch", groups.c.waiting_since) * 1_000_000, BigInteger)
    key = (groups.c.priority_class, groups.c.project_id, groups.c.user_id)
    lists = (
        *map(_build_json, (start_order.select_shares(), start_order.select_usage())),
        _build_json(start_order.select_live_usage()),
        _build_json(select(*key, since.label("since"))),
    )
    return select(db_now(), quotas, windows, *lists)


def _build_json(query: Select[Any]) -> Any:
    rows = query.subquery()
    array = func.json_agg(func.json_build_array(*rows.c))
    return select(func.coalesce(cast(array, Text), "[]")).select_from(rows).scalar_subquery()


def _parse(row: Any) -> PoolRead:
    now, has_quotas, has_windows, *texts = row
    shares, used, live, groups = map(orjson.loads, texts)
    return PoolRead(
        now=now,
        shares=dict(shares),
        used={_build_account(project_id, user_id): value for project_id, user_id, value in used},
        live=_build_live(live),
        groups={_build_group(*key): _build_time(since) for *key, since in groups},
        has_quotas=has_quotas,
        has_windows=has_windows,
    )


def _build_live(rows: Iterable[Any]) -> list[LiveUsage]:
    return [
        LiveUsage(
            account=_build_account(project_id, user_id),
            priority_class=PriorityClass(name),
            devices=int(count),
            weight=float(weight),
        )
        for project_id, user_id, name, count, weight in rows
    ]


# The same persons come with each decision.
_build_account: Final = lru_cache(_MAX_KEPT)(UsageAccount)


@lru_cache(_MAX_KEPT)
def _build_group(priority_class: str, project_id: str, user_id: str) -> Group:
    return Group(PriorityClass(priority_class), project_id, user_id)


@lru_cache(_MAX_KEPT)
def _build_time(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
