"""Accounting: what was used within a period, by project, person, experiment and so on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.repositories import access as access_rows
from app.db.repositories import pool_hours, usage_reports
from app.db.repositories import projects as project_rows
from app.db.repositories.usage_reports import LOST, GroupSum, UsageFilter
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.domain.usage_periods import UsagePeriod, divide
from app.services import pools
from app.services.views.login_names import load_login_names
from palestra.contract.permissions import Permission
from palestra.contract.usage import (
    OccupancyBucket,
    PoolOccupancy,
    UsageBucket,
    UsageBucketSize,
    UsageGroup,
    UsageKey,
    UsageQuery,
    UsageReport,
)

DEFAULT_DAYS: Final = 7
MAX_BUCKETS: Final = 1_000
MAX_GROUPS: Final = 100
"""Groups that a report lists; all others are one group, `rest`."""
DELETED_PROJECT: Final = "(deleted project)"
"""Stands for a project that was deleted. No slug has brackets."""

_SECONDS: Final = {
    UsageBucketSize.HOUR: 3_600,
    UsageBucketSize.DAY: 86_400,
    UsageBucketSize.WEEK: 604_800,
}
_NOBODY: Final = ""
"""ID that no user has."""
_SUMS: Final = ("recorded_seconds", "slot_seconds", "busy_seconds", "idle_waiting_seconds")


@dataclass(slots=True)
class Amount:
    """Device-seconds as they are added up."""

    used: float = 0.0
    gpu: float = 0.0
    lost: float = 0.0

    def add(self, group: GroupSum, seconds: float) -> None:
        """Adds seconds of a kind."""
        if group.kind == LOST:
            self.lost += seconds
            return
        self.used += seconds
        if group.is_gpu:
            self.gpu += seconds

    def include(self, other: "Amount") -> None:
        """Adds another amount."""
        self.used += other.used
        self.gpu += other.gpu
        self.lost += other.lost

    def view(self) -> dict[str, float]:
        """Returns the members of a `UsageAmount`."""
        return {"used_seconds": self.used, "gpu_seconds": self.gpu, "lost_seconds": self.lost}


@dataclass(slots=True)
class UsedByGroup:
    """The usage of one group, in total and by bucket."""

    total: Amount = field(default_factory=Amount)
    buckets: dict[int, Amount] = field(default_factory=dict)

    def add(self, group: GroupSum, width: float) -> None:
        """Adds the seconds of the given intervals."""
        for index, seconds in divide(group.interval, width):
            self.buckets.setdefault(index, Amount()).add(group, seconds)
            self.total.add(group, seconds)

    def include(self, other: "UsedByGroup") -> None:
        """Adds the usage of another group."""
        self.total.include(other.total)
        for index, amount in other.buckets.items():
            self.buckets.setdefault(index, Amount()).include(amount)


Key = tuple[str | None, ...]
"""Names of a group: one for each key by which is grouped."""


async def report(session: Session, principal: Principal, query: UsageQuery) -> UsageReport:
    """Returns the usage within a period.

    Members sum the usage of their projects, administrators of the server that of all projects.

    Raises:
        InvalidError: `period_reversed`, `too_many_buckets`; `no_such_project` and `unknown_pool`
            for filters that name no object which the caller may read.
    """
    now = await clock.now(session)
    period = choose_period(query, now)
    wanted = await choose_filter(session, principal, query)
    groups = await load_groups(session, query.by, wanted, period, now)
    # Ties are listed by name, so that a page that is read again does not change its order.
    ordered = sorted(groups, key=lambda key: (-_size(groups[key]), tuple(map(str, key))))
    total, rest = UsedByGroup(), UsedByGroup()
    for used in groups.values():
        total.include(used)
    for key in ordered[MAX_GROUPS:]:
        rest.include(groups[key])
    further = max(0, len(ordered) - MAX_GROUPS)
    return UsageReport(
        at=now,
        since=period.since,
        until=period.until,
        by=list(query.by),
        bucket=query.bucket,
        starts=[period.start_of(index) for index in range(period.buckets)],
        groups=[_view(query.by, key, groups[key], period) for key in ordered[:MAX_GROUPS]],
        rest=_view((), (), rest, period) if further else None,
        rest_groups=further,
        pools=await _load_occupancy(session, principal, query, period),
        **total.total.view(),
    )


def choose_period(query: UsageQuery, now: datetime) -> UsagePeriod:
    """Returns the period of a query: by default the last seven days.

    Raises:
        InvalidError: `period_reversed` if it is empty, `too_many_buckets`.
    """
    until = now if query.until is None else min(query.until, now)
    since = until - timedelta(days=DEFAULT_DAYS) if query.since is None else query.since
    if since >= until:
        raise InvalidError(
            "period_reversed",
            "The period is empty: `since` must lie before `until`, and before the present time "
            f"{now:%Y-%m-%dT%H:%M:%SZ}.",
            pointer="query/since",
        )
    size = None if query.bucket is None else _SECONDS[query.bucket]
    period = UsagePeriod(since=since, until=until, bucket_seconds=size)
    if period.buckets > MAX_BUCKETS:
        raise InvalidError(
            "too_many_buckets",
            f"The period has {period.buckets:,} parts of a {query.bucket}, at most "
            f"{MAX_BUCKETS:,} can be shown. Ask for a shorter period or a longer `bucket`.",
            pointer="query/bucket",
        )
    return period


async def choose_filter(session: Session, principal: Principal, query: UsageQuery) -> UsageFilter:
    """Returns the filter of a query, limited to the usage that the caller may read.

    Raises:
        InvalidError: `no_such_project` or `unknown_pool`, also for those of others.
    """
    sees_all = sees_all_usage(principal)
    wanted = UsageFilter(
        project_ids=None if sees_all else principal.projects_with(Permission.PROJECT_READ),
        experiment_id=query.experiment,
        environment=query.environment,
    )
    if query.project is not None:
        project_id = await _find_project(session, wanted, query.project)
        wanted = replace(wanted, project_ids=[project_id])
    if query.user is not None:
        user = principal.user_id if query.user == "me" else None
        if user is None:
            row = await access_rows.find_user_by_name(session, query.user)
            user = _NOBODY if row is None else row.id
        wanted = replace(wanted, user_id=user)
    if query.pool is not None:
        await _check_pool(session, principal, query.pool)
        wanted = replace(wanted, pools=[query.pool])
    return wanted


def sees_all_usage(principal: Principal) -> bool:
    """Returns whether a caller reads the usage of all projects: an administrator of the server."""
    return principal.permits(Permission.SERVER_POOLS)


async def _find_project(session: Session, wanted: UsageFilter, slug: str) -> str:
    project = await project_rows.find_by_slug(session, slug)
    readable = wanted.project_ids
    if project is None or (readable is not None and project.id not in readable):
        raise InvalidError(
            "no_such_project",
            "There is no such project, or you are no member of it. `palestra projects list` names "
            "yours.",
            pointer="query/project",
        )
    return project.id


async def _check_pool(session: Session, principal: Principal, name: str) -> None:
    visible = await pools.list_visible_names(session, principal)
    known = await pool_hours.list_pools(session) if visible is None else visible
    if name not in known:
        raise InvalidError(
            "unknown_pool",
            "There is no such pool, or it admits none of your projects. `palestra pools list` "
            "names those that you may use.",
            pointer="query/pool",
        )


async def load_groups(
    session: Session,
    by: Sequence[UsageKey],
    wanted: UsageFilter,
    period: UsagePeriod,
    now: datetime,
) -> dict[Key, UsedByGroup]:
    """Returns the usage of each group, by the names of its keys."""
    sums = await usage_reports.sum_usage(session, by, wanted, period, now)
    names = await _load_names(session, by, {group.key for group in sums})
    found: dict[Key, UsedByGroup] = {}
    for group in sums:
        # Several deleted users or projects have one name, and are one group.
        key = tuple(names.get(value, value) if value is not None else None for value in group.key)
        found.setdefault(key, UsedByGroup()).add(group, period.width)
    return found


async def _load_names(
    session: Session, by: Sequence[UsageKey], keys: Collection[Key]
) -> Mapping[str, str]:
    """Returns the slugs of the projects and the login names of the users, by ID."""

    def values(name: UsageKey) -> set[str]:
        if name not in by:
            return set()
        place = by.index(name)
        return {value for key in keys if (value := key[place]) is not None}

    project_ids, user_ids = values(UsageKey.PROJECT), values(UsageKey.USER)
    slugs = await access_rows.load_project_slugs(session, project_ids) if project_ids else {}
    users = await load_login_names(session, user_ids) if user_ids else {}
    return {**{one: slugs.get(one, DELETED_PROJECT) for one in project_ids}, **users}


def _size(used: UsedByGroup) -> float:
    return used.total.used + used.total.lost


def _view(by: Sequence[UsageKey], key: Key, used: UsedByGroup, period: UsagePeriod) -> UsageGroup:
    return UsageGroup(
        **dict(zip(by, key, strict=True)),
        **used.total.view(),
        buckets=[
            UsageBucket(start=period.start_of(index), **amount.view())
            for index, amount in sorted(used.buckets.items())
        ],
    )


async def _load_occupancy(
    session: Session, principal: Principal, query: UsageQuery, period: UsagePeriod
) -> list[PoolOccupancy]:
    """Returns the occupancy of the slots of the pools that the caller sees, by whole hours."""
    visible = await pools.list_visible_names(session, principal)
    names = await pool_hours.list_pools(session) if visible is None else sorted(visible)
    names = [name for name in names if query.pool in {None, name}]
    since = period.since.replace(minute=0, second=0, microsecond=0)
    found: dict[str, dict[int, dict[str, float]]] = {name: {} for name in names}
    for row in await pool_hours.list_hours(session, names, since, period.until):
        index = int(max(0.0, (row.hour - period.origin).total_seconds()) // period.width)
        sums = found[row.pool].setdefault(index, dict.fromkeys(_SUMS, 0.0))
        for name in _SUMS:
            sums[name] += getattr(row, name)
    return [
        PoolOccupancy(
            pool=name,
            **{one: sum((sums[one] for sums in buckets.values()), 0.0) for one in _SUMS},
            buckets=[
                OccupancyBucket(start=period.start_of(index), **sums)
                for index, sums in sorted(buckets.items())
                if sums["recorded_seconds"] > 0
            ],
        )
        for name, buckets in found.items()
    ]
