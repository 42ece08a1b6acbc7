"""What the projects of a pool and their persons are entitled to, and what they used."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.models.projects import ProjectRow
from app.db.repositories import projects as project_rows
from app.db.repositories import queue_groups, start_order
from app.db.repositories.usage_reports import USED, UsageFilter, sum_usage
from app.domain.principal import Principal
from app.domain.queue import usage
from app.domain.queue.start_order import UsageAccount
from app.domain.usage_periods import UsagePeriod
from app.services.usage.reports import sees_all_usage
from app.services.views.login_names import load_login_names
from app.services.workers import pools
from palestra.contract.permissions import Permission
from palestra.contract.usage import PersonShareView, PoolSharesView, ProjectShareView

PERIOD_SECONDS: Final = usage.HALF_LIFE_SECONDS
"""Device-seconds of this time are counted as used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShares:
    """Shares and usage of a pool, of all projects."""

    now: datetime
    shares: Mapping[str, float]
    """Part of the pool of each admitted project, by ID; they add up to 1."""
    used: Mapping[UsageAccount, float]
    """Device-seconds within the period."""
    decayed: Mapping[UsageAccount, float]
    """Decayed device-seconds, with the charges of live and assigned jobs."""
    persons: Mapping[str, frozenset[str]]
    """IDs of the users of each project who have queued or live jobs or used something."""

    def entitle(self, account: UsageAccount) -> float:
        """Returns the part of the pool to which a person in a project is entitled."""
        others = len(self.persons.get(account.project_id, frozenset()) | {account.user_id})
        return self.shares.get(account.project_id, 0.0) / others


async def read_shares(session: Session, pool: str) -> PoolShares:
    """Returns the shares and the usage of a pool."""
    now = await clock.now(session)
    shares = await start_order.load_shares(session, pool)
    total = sum(shares.values())
    stored = await start_order.load_usage(session, pool)
    live = await start_order.load_live_usage(session, pool)
    for one in live:
        growing = one.devices * usage.weight(now) - one.weight
        stored[one.account] = stored.get(one.account, 0.0) + growing * usage.SECONDS_PER_WEIGHT
    period = UsagePeriod(since=now - timedelta(seconds=PERIOD_SECONDS), until=now)
    wanted = UsageFilter(pools=[pool])
    used: dict[UsageAccount, float] = {}
    for group in await sum_usage(session, ("project", "user"), wanted, period, now):
        if group.kind == USED:
            account = UsageAccount(str(group.key[0]), str(group.key[1]))
            used[account] = used.get(account, 0.0) + group.interval.whole
    persons: dict[str, set[str]] = {}
    waiting = [group.account for group in await queue_groups.list_groups(session, pool)]
    for account in (*used, *waiting, *(one.account for one in live)):
        persons.setdefault(account.project_id, set()).add(account.user_id)
    return PoolShares(
        now=now,
        shares={project_id: share / total for project_id, share in shares.items()},
        used=used,
        decayed={
            account: usage.decayed_seconds(seconds, now) for account, seconds in stored.items()
        },
        persons={project_id: frozenset(found) for project_id, found in persons.items()},
    )


async def show(session: Session, principal: Principal, name: str) -> PoolSharesView:
    """Returns the shares of a pool, as far as the caller may read its projects.

    Projects that the caller may not read are summed in one item. A pool that shows names has an
    item for each of these projects, without persons. An administrator of the server sees all
    projects and persons.

    Raises:
        NotFoundError: If the pool does not exist for the caller.
    """
    pool = await pools.find_visible(session, principal, name)
    found = await read_shares(session, pool.name)
    manages = sees_all_usage(principal)
    readable = principal.projects_with(Permission.PROJECT_READ)
    taking_part = {account.project_id for account in (*found.used, *found.decayed)}
    taking_part |= set(found.shares)
    projects = await project_rows.list_by_ids(session, taking_part)
    own = {one.id for one in projects if manages or one.id in readable}
    listed = [
        one for one in projects if one.id in own or (pool.shows_names and one.id in found.shares)
    ]
    names = await load_login_names(
        session, {user_id for one in own for user_id in found.persons.get(one, ())}
    )
    total = _Total(used=sum(found.used.values()), decayed=sum(found.decayed.values()))
    views = [_view(found, total, [one.id], one, names if one.id in own else {}) for one in listed]
    rest = taking_part - {one.id for one in listed}
    if rest:
        views.append(_view(found, total, rest, None, {}))
    return PoolSharesView(
        pool=pool.name,
        at=found.now,
        period_seconds=PERIOD_SECONDS,
        half_life_seconds=usage.HALF_LIFE_SECONDS,
        projects=views,
    )


@dataclass(frozen=True, slots=True)
class _Total:
    """Device-seconds of all projects of a pool."""

    used: float
    decayed: float

    def fraction_used(self, seconds: float) -> float | None:
        return seconds / self.used if self.used > 0 else None

    def fraction_decayed(self, seconds: float) -> float | None:
        return seconds / self.decayed if self.decayed > 0 else None


def _view(
    found: PoolShares,
    total: _Total,
    project_ids: Collection[str],
    project: ProjectRow | None,
    names: Mapping[str, str],
) -> ProjectShareView:
    """Returns one view of several projects, with the persons whose names are given."""
    used = _sum_projects(found.used, project_ids)
    decayed = _sum_projects(found.decayed, project_ids)
    accounts = [
        UsageAccount(project_id, user_id)
        for project_id in project_ids
        for user_id in found.persons.get(project_id, ())
        if user_id in names
    ]
    return ProjectShareView(
        project=None if project is None else project.slug,
        name=None if project is None else project.name,
        entitled=sum(found.shares.get(one, 0.0) for one in project_ids),
        used_seconds=used,
        used=total.fraction_used(used),
        decayed_seconds=decayed,
        decayed=total.fraction_decayed(decayed),
        persons=[
            PersonShareView(
                user=names[account.user_id],
                entitled=found.entitle(account),
                used_seconds=found.used.get(account, 0.0),
                used=total.fraction_used(found.used.get(account, 0.0)),
                decayed_seconds=found.decayed.get(account, 0.0),
                decayed=total.fraction_decayed(found.decayed.get(account, 0.0)),
            )
            for account in sorted(accounts, key=lambda one: names[one.user_id])
        ],
    )


def _sum_projects(seconds: Mapping[UsageAccount, float], project_ids: Collection[str]) -> float:
    return sum(
        (value for account, value in seconds.items() if account.project_id in project_ids), 0.0
    )
